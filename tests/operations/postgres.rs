//! On a real PostgreSQL.

use tokio_postgres::{Client, SimpleQueryMessage};
use tower_idempotency::store::{PostgresOptions, PostgresStore, Queue};

use crate::database::{self, Schema};
use crate::page::sql_behind;
use crate::sample::{begin, fill_inbox, freed};

/// A store, and psql at its tables.
async fn fresh() -> (PostgresStore, Client, Schema) {
    let url = database::url();
    let schema = Schema::new(&url);
    let options = PostgresOptions::with_table(&schema.table()).unwrap();
    let store = PostgresStore::connect_with(&url, &options).await.unwrap();
    store.migrate().await.unwrap();
    let client = database::client(&url).await;
    let path = schema.table().replace(".idempotency", "");
    let set = format!("SET search_path = {path}");
    client.batch_execute(&set).await.unwrap();
    (store, client, schema)
}

/// The rows of a statement, each as its texts.
async fn rows(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).await;
    let messages = messages.unwrap_or_else(|error| panic!("{error:?} in {sql}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.map(|row| {
        (0..row.len())
            .map(|at| row.get(at).map(str::to_owned))
            .collect()
    })
    .collect()
}

#[tokio::test]
async fn a_key_is_found_by_its_digits_and_its_parts_in_line_and_in_the_inbox() {
    let (store, client, _schema) = fresh().await;
    begin(&store).await;
    fill_inbox(&store).await;
    let mut found = Vec::new();
    for sql in sql_behind("### PostgreSQL") {
        found.push(rows(&client, sql).await);
    }
    let [
        by_digits,
        by_parts,
        running,
        in_inbox,
        waiting,
        dead,
        redriven,
    ] = &found[..]
    else {
        panic!("{} blocks", found.len());
    };
    assert_eq!(by_digits[0][0].as_deref(), Some("running"));
    assert!(by_parts[0].contains(&Some("wamid.A".to_owned())));
    assert!(running[0].contains(&Some("wamid.A".to_owned())));
    assert_eq!(in_inbox[0][2].as_deref(), Some("wamid.A"));
    assert_eq!((waiting.len(), dead.len()), (1, 1));
    assert!(dead[0].contains(&Some("answered 500".to_owned())));
    assert_eq!(redriven[0][0].as_deref(), Some("1"));
}

#[tokio::test]
async fn effects_that_wait_are_found() {
    let (store, client, _schema) = fresh().await;
    fill_inbox(&store.outbox().unwrap()).await;
    let sql = sql_behind("PostgreSQL, what waits longest:");
    let waiting = rows(&client, sql[0]).await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0][1].as_deref(), Some("wamid.A"));
}

#[tokio::test]
async fn a_stuck_key_is_freed() {
    let (store, client, _schema) = fresh().await;
    let stuck = begin(&store).await;
    for sql in sql_behind("PostgreSQL:") {
        client.batch_execute(sql).await.unwrap();
    }
    freed(&store, stuck).await;
}

#[tokio::test]
async fn keys_are_counted() {
    let (store, client, _schema) = fresh().await;
    begin(&store).await;
    let blocks = sql_behind("## Sizing");
    let counted = rows(&client, blocks[0]).await;
    assert_eq!(
        counted[0][..2],
        [Some("1".to_owned()), Some("1".to_owned())]
    );
    assert_eq!(rows(&client, blocks[1]).await, [[Some("0".to_owned())]]);
}
