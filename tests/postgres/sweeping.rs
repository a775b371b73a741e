//! Rows whose retention has ended go: by themselves, in parts, and out of the way of claims.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::Client;
use tower_idempotency::Keep;
use tower_idempotency::store::{PostgresStore, Store, Wanted};

use crate::database::{self, Schema};
use crate::fixture::{fresh, open, options};
use crate::hand::{LONG, SHORT, begin, claim_of, granted, key, record, until};

/// Runs so many messages that are kept for a moment only.
async fn fill(store: &PostgresStore, count: usize) {
    let keys: Vec<_> = (0..count).map(key).collect();
    for some in keys.chunks(200) {
        let leases = store
            .claim(&claim_of(some))
            .await
            .unwrap()
            .into_iter()
            .map(granted);
        let ends: Vec<_> = leases
            .map(|lease| lease.record(record("x"), Keep::For(SHORT)))
            .collect();
        store.settle(&ends).await.unwrap();
    }
    sleep(SHORT * 2).await;
}

async fn rows(client: &Client, schema: &Schema) -> i64 {
    let sql = format!("SELECT count(*) FROM {}", schema.table());
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Field case B66.
#[tokio::test(flavor = "multi_thread")]
async fn the_sweeper_removes_what_has_ended_by_itself() {
    let schema = Schema::new(&database::url());
    let eager = options(&schema).sweep_every(Duration::from_millis(50));
    let store = open(&database::url(), &eager).await;
    fill(&store, 300).await;
    let running = begin(&store, &key("running")).await;
    let client = database::client(&database::url()).await;
    until("the rows go", async || {
        (rows(&client, &schema).await == 1).then_some(())
    })
    .await;
    drop(running);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweeper_stops_with_the_last_handle() {
    let schema = Schema::new(&database::url());
    let eager = options(&schema).sweep_every(Duration::from_millis(50));
    let store = open(&database::url(), &eager).await;
    let other = open(&database::url(), &options(&schema).without_sweeper()).await;
    drop(store);
    fill(&other, 10).await;
    sleep(Duration::from_millis(500)).await;
    let client = database::client(&database::url()).await;
    assert_eq!(rows(&client, &schema).await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_share_the_work_and_remove_each_row_once() {
    let (store, schema) = fresh().await;
    let url = database::url();
    let others = [
        open(&url, &options(&schema)).await,
        open(&url, &options(&schema)).await,
    ];
    fill(&store, 3000).await;
    let all = async |store: &PostgresStore| {
        let mut swept = 0;
        for _ in 0..30 {
            swept += store.sweep(100).await.unwrap();
        }
        swept
    };
    let (a, b, c) = tokio::join!(all(&store), all(&others[0]), all(&others[1]));
    assert_eq!(a + b + c, 3000);
    let client = database::client(&url).await;
    assert_eq!(rows(&client, &schema).await, 0);
}

/// Field case B66.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_being_swept_hold_up_no_claim() {
    let (store, schema) = fresh().await;
    fill(&store, 500).await;
    let mut client = database::client(&database::url()).await;
    let transaction = client.transaction().await.unwrap();
    let sweep = format!("SELECT {}_sweep(500)", schema.table());
    transaction.batch_execute(&sweep).await.unwrap();
    let other: Vec<_> = (1000..1010).map(key).collect();
    for verdict in store.claim(&claim_of(&other)).await.unwrap() {
        drop(granted(verdict));
    }
    transaction.commit().await.unwrap();
    drop(begin(&store, &key(0)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_message_extends_a_conversation_without_touching_its_rows() {
    let (store, schema) = fresh().await;
    let conversation = tower_idempotency::Conversation::new("postgres", "", "c");
    let say = async |id: &str| {
        let wanted = Wanted::new(key(id)).conversation(conversation.clone());
        let mut claim = claim_of(&[]);
        claim.wanted.push(wanted);
        let lease = granted(store.claim(&claim).await.unwrap().pop().unwrap());
        let end = lease.record(record(id), Keep::Conversation { idle: LONG });
        store.settle(&[end]).await.unwrap();
    };
    say("first").await;
    let client = database::client(&database::url()).await;
    let version = format!(
        "SELECT xmin::text, ctid::text FROM {} WHERE id = 'first'",
        schema.table()
    );
    let before = client.query_one(&version, &[]).await.unwrap();
    say("second").await;
    let after = client.query_one(&version, &[]).await.unwrap();
    let both = |row: &tokio_postgres::Row| (row.get::<_, String>(0), row.get::<_, String>(1));
    assert_eq!(both(&after), both(&before));
}
