//! The store keeps the store contract, clause by clause, by itself and boxed.

mod plain {
    use tempfile::TempDir;
    use tower_idempotency::store::SqliteStore;

    fn fresh() -> (SqliteStore, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("chat.db")).unwrap();
        (store, folder)
    }

    async fn reopen((store, folder): (SqliteStore, TempDir)) -> (SqliteStore, TempDir) {
        store.shutdown().await;
        let store = SqliteStore::open(folder.path().join("chat.db")).unwrap();
        (store, folder)
    }

    tower_idempotency::store_contract!(async || fresh(), reopen);
    tower_idempotency::queue_contract!(async || fresh(), reopen);
}

/// As the hot path of a server is: swept all the time, and other handles on the file beside it.
mod swept_and_shared {
    use std::time::Duration;

    use tempfile::TempDir;
    use tower_idempotency::store::{SqliteOptions, SqliteStore};

    fn fresh() -> (SqliteStore, (SqliteStore, TempDir)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.db");
        let options = SqliteOptions::new().sweep_every(Duration::from_millis(1));
        let other = SqliteStore::with_options(&path, &options).unwrap();
        let store = SqliteStore::with_options(&path, &options).unwrap();
        (store, (other, folder))
    }

    tower_idempotency::store_contract!(async || fresh());
    tower_idempotency::queue_contract!(async || fresh());
}
