//! A store on a schema of the test's own.

use tower_idempotency::store::{PostgresOptions, PostgresStore};

use crate::database::{self, Schema};

/// What must outlive the store: its schema.
pub(crate) type Held = (PostgresStore, Schema);

/// Options for the table in this schema.
pub(crate) fn options(schema: &Schema) -> PostgresOptions {
    PostgresOptions::with_table(&schema.table()).unwrap()
}

/// A store that holds nothing, in the shared database.
pub(crate) async fn fresh() -> Held {
    let schema = Schema::new(&database::url());
    let store = open(&database::url(), &options(&schema)).await;
    (store, schema)
}

/// A store with its tables.
pub(crate) async fn open(url: &str, options: &PostgresOptions) -> PostgresStore {
    let store = PostgresStore::connect_with(url, options).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// The same tables by another store, as after the restart of a process.
pub(crate) async fn reopen((store, schema): Held) -> Held {
    drop(store);
    let url = database::url();
    let store = PostgresStore::connect_with(&url, &options(&schema)).await;
    (store.unwrap(), schema)
}
