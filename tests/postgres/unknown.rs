//! What has lapsed is left alone by the statement that writes, whatever was seen of it before; and
//! is found by the query in the docs.

use tower_idempotency::Key;
use tower_idempotency::store::Store;

use crate::database;
use crate::fixture::fresh;
use crate::hand::{begin, key};

#[tokio::test(flavor = "multi_thread")]
async fn the_statement_that_takes_over_judges_how_long_ago_the_lease_lapsed() {
    let (store, schema) = fresh().await;
    let lease = begin(&store, &key("a")).await;
    store
        .renew(&[lease.hold()], std::time::Duration::ZERO)
        .await
        .unwrap();
    let client = database::client(&database::url()).await;
    // How many rows a claim takes over that leaves alone what lapsed less than so long ago.
    let taken = async |milliseconds: i64| -> i64 {
        let take = format!(
            "SELECT count(t.key) FROM (SELECT array_agg(key) AS keys FROM {0}) k,
                {0}_take(k.keys, ARRAY[md5('another')::uuid], ARRAY[60000, $1::bigint], ARRAY['postgres'],
                    ARRAY[''], NULL, NULL, NULL) t",
            schema.table()
        );
        let row = client.query_one(&take, &[&milliseconds]).await.unwrap();
        row.get(0)
    };
    assert_eq!(taken(600_000).await, 0);
    assert_eq!(taken(31_536_000_000_000).await, 0, "for ever");
    assert_eq!(taken(0).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_query_of_the_docs_finds_what_is_unknown() {
    let (store, schema) = fresh().await;
    let lease = begin(&store, &key("lapsed")).await;
    begin(&store, &key("running")).await;
    store
        .renew(&[lease.hold()], std::time::Duration::ZERO)
        .await
        .unwrap();
    let client = database::client(&database::url()).await;
    let query = format!(
        "SELECT channel, scope, id, attempt, claimed_at, lease_until FROM {}
            WHERE state = 'running' AND lease_until <= now()",
        schema.table()
    );
    let rows = client.query(&query, &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    let text = |at| rows[0].get::<_, &str>(at);
    assert_eq!(Key::restored(text(0), text(1), text(2)), key("lapsed"));
}
