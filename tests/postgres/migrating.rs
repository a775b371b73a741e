//! The tables: made once by whoever comes first, readable, and by a migration tool if so wished.

use tokio::task::JoinSet;
use tower_idempotency::Key;
use tower_idempotency::store::{PostgresStore, Store};

use crate::database::{Schema, client, url};
use crate::fixture::{fresh, options};
use crate::hand::{begin, claim_of, done, granted, key, settle};

/// Field case P85.
#[tokio::test(flavor = "multi_thread")]
async fn sixteen_processes_that_make_the_tables_at_once_all_succeed() {
    let schema = Schema::new(&url());
    let mut stores = JoinSet::new();
    for _ in 0..16 {
        let options = options(&schema);
        stores.spawn(async move {
            let store = PostgresStore::connect_with(&url(), &options).await.unwrap();
            store.migrate().await.unwrap();
            store
        });
    }
    let stores = stores.join_all().await;
    drop(begin(&stores[0], &key("a")).await);
}

/// Field case P85.
#[tokio::test(flavor = "multi_thread")]
async fn the_sql_makes_the_same_tables_by_another_tool() {
    let schema = Schema::new(&url());
    let other = client(&url()).await;
    let name = schema.table().split('.').next().unwrap().to_owned();
    other
        .batch_execute(&format!("CREATE SCHEMA {name}"))
        .await
        .unwrap();
    other
        .batch_execute(&PostgresStore::schema(&options(&schema)))
        .await
        .unwrap();
    let store = PostgresStore::connect_with(&url(), &options(&schema))
        .await
        .unwrap();
    store.migrate().await.unwrap();
    let end = done(begin(&store, &key("a")).await);
    settle(&store, &end).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_are_asked_for_where_they_are_missing() {
    let schema = Schema::new(&url());
    let store = PostgresStore::connect_with(&url(), &options(&schema))
        .await
        .unwrap();
    let missing = store.claim(&claim_of(&[key("a")])).await.unwrap_err();
    assert!(missing.is_misconfigured() && missing.to_string().contains("migrate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_can_be_read_with_psql() {
    let (store, schema) = fresh().await;
    let odd = Key::new("whats\0app", "caf\u{e9}", &["wamid.\u{1F680}\0"]);
    let lease = granted(store.claim(&claim_of(&[odd])).await.unwrap().pop().unwrap());
    settle(&store, &done(lease)).await.unwrap();
    let reader = client(&url()).await;
    let sql = format!(
        "SELECT channel, scope, id, state, attempt, done_at > claimed_at FROM {}",
        schema.table()
    );
    let row = reader.query_one(&sql, &[]).await.unwrap();
    let text = |at: usize| row.get::<_, String>(at);
    assert_eq!(
        (text(0), text(1)),
        ("whats␀app".to_owned(), "caf\u{e9}".to_owned())
    );
    assert_eq!(
        (text(2), text(3)),
        ("wamid.\u{1F680}␀".to_owned(), "done".to_owned())
    );
    assert!(row.get::<_, i32>(4) == 1 && row.get::<_, bool>(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_hold_the_password() {
    for url in [
        "postgres://chat:sesame@%2Fnowhere/chat",
        "postgres://chat:sesame@localhost/chat?sslmode=require",
        "postgres://chat:sesame@localhost/chat?nothing=known",
    ] {
        let error = PostgresStore::connect(url).await.unwrap_err();
        assert!(
            !format!("{error:?} {error}").contains("sesame"),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_chooses_the_store() {
    let store = tower_idempotency::store::connect("postgres://chat@%2Fnowhere/chat").await;
    assert!(store.unwrap_err().is_retryable());
}
