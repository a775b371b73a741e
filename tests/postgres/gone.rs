//! A row goes between the conflict that it causes and the look at it: the key is claimed again, and
//! nobody is told to run without a row.

use std::fmt::Write;

use tokio::task::JoinSet;
use tokio_postgres::Client;
use tower_idempotency::Key;
use tower_idempotency::store::{Store, Verdict};

use crate::database;
use crate::fixture::fresh;
use crate::hand::{claim_of, is_running, key, look, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_goes_after_its_conflict_is_claimed_again() {
    let (store, schema) = fresh().await;
    let mut other = database::client(&database::url()).await;
    for number in 0..20 {
        let key = key(number);
        // A row that is not committed yet, as another process's claim makes it.
        let transaction = other.transaction().await.unwrap();
        let made = format!(
            "INSERT INTO {} (key, token, claimed_at, lease_until, attempt, forgotten, nonce, \
             state, channel, scope, id) VALUES ('{}', {}, now(), now() + interval '1 hour', 1, \
             false, gen_random_uuid(), 'running', '', '', '')",
            schema.table(),
            uuid_of(&key),
            1_000_000 + number,
        );
        transaction.batch_execute(&made).await.unwrap();
        let (asking, claim) = (store.clone(), claim_of(std::slice::from_ref(&key)));
        let mut claimed = JoinSet::from_iter([async move { asking.claim(&claim).await }]);
        waits(&schema.table()).await;
        let gone = format!(
            "COMMIT; DELETE FROM {} WHERE token >= 1000000",
            schema.table()
        );
        transaction.batch_execute(&gone).await.unwrap();
        drop(transaction);
        let verdicts = claimed.join_next().await.unwrap().unwrap();
        match verdicts.unwrap().pop().unwrap() {
            Verdict::Run(lease) => {
                assert!(lease.token().number() < 1_000_000);
                assert!(is_running(&look(&store, &key).await));
            }
            // It looked before the row went.
            Verdict::Running { .. } => {}
            other => panic!("neither granted nor running: {other:?}"),
        }
    }
}

/// Until a claim of this table waits for a lock.
async fn waits(table: &str) {
    let client = database::client(&database::url()).await;
    let schema = table.split('.').next().unwrap();
    until("the claim waits for the row", async || {
        is_waiting(&client, schema).await.then_some(())
    })
    .await;
}

async fn is_waiting(client: &Client, schema: &str) -> bool {
    let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
        AND query LIKE '%' || $1 || '%_begin%'";
    let rows = client.query(waiting, &[&schema]).await.unwrap();
    !rows.is_empty()
}

/// The row's key: the first half of the digest.
fn uuid_of(key: &Key) -> String {
    let mut text = String::new();
    for byte in key.digest().iter().take(16) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
