//! Two processes on one database, each given all messages at once, one killed every two seconds:
//! each message is recorded once, and no run begins while another holds its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::{Client, Statement};
use tower_idempotency::Keep;
use tower_idempotency::store::{Claim, Lease, Nonce, PostgresOptions, PostgresStore, Store};
use tower_idempotency::store::{Verdict, Wanted};

use crate::child;
use crate::database::{self, client};
use crate::fixture::fresh;
use crate::hand::{LONG, key, record};

const MESSAGES: u32 = 10_000;
const IN_FLIGHT: u32 = 32;
const LEASE: Duration = Duration::from_secs(2);
const BETWEEN_KILLS: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn each_of_10_000_messages_is_recorded_once_through_kills() {
    let (store, schema) = fresh().await;
    let client = client(&database::url()).await;
    let table = schema.table();
    let runs = format!(
        "CREATE TABLE {table}_runs (id text, token bigint, lease_until timestamptz, \
         began timestamptz, ended timestamptz, PRIMARY KEY (id, token))"
    );
    client.batch_execute(&runs).await.unwrap();
    let start = || child::spawn("two_processes::works", &table, None);
    let mut processes = [start(), start()];
    let done = format!("SELECT count(*) FROM {table} WHERE state = 'done'");
    let (mut kills, mut last) = (0, Instant::now());
    while !(processes[0].has_ended() && processes[1].has_ended()) {
        sleep(Duration::from_millis(50)).await;
        let done = number(&client, &done).await;
        if last.elapsed() > BETWEEN_KILLS && done < i64::from(MESSAGES) {
            let victim = &mut processes[kills % 2];
            victim.kill();
            *victim = start();
            kills += 1;
            last = Instant::now();
        }
    }
    assert!(kills > 0, "all was done before the first kill");
    drop(store);
    check(&client, &table).await;
}

async fn check(client: &Client, table: &str) {
    let all = i64::from(MESSAGES);
    let done = format!("SELECT count(*) FROM {table} WHERE state = 'done' AND record IS NOT NULL");
    assert_eq!(number(client, &done).await, all);
    let rows = format!("SELECT count(*) FROM {table}");
    assert_eq!(number(client, &rows).await, all);
    let both =
        format!("FROM {table}_runs a JOIN {table}_runs b USING (id) WHERE a.token < b.token");
    let overlaps = format!(
        "SELECT count(*) {both} AND b.began < a.lease_until AND (a.ended IS NULL OR b.began < a.ended)"
    );
    assert_eq!(number(client, &overlaps).await, 0, "runs overlap");
    let again = number(client, &format!("SELECT count(*) {both}")).await;
    assert!(again > 0, "no kill met a run");
    let unfinished = format!(
        "SELECT count(*) FROM {table} t JOIN {table}_runs r USING (id, token) WHERE r.ended IS NULL"
    );
    assert_eq!(
        number(client, &unfinished).await,
        0,
        "recorded without its end"
    );
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process that another test starts"]
async fn works() {
    let Some(table) = child::task() else { return };
    let options = PostgresOptions::with_table(&table).unwrap();
    let store = PostgresStore::connect_with(&database::url(), &options)
        .await
        .unwrap();
    let next = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        tasks.spawn(serve(
            store.clone(),
            Handler::open(&table).await,
            Arc::clone(&next),
        ));
    }
    tasks.join_all().await;
}

/// Takes message after message, as they are posted, and repeats each until it is done.
async fn serve(store: PostgresStore, handler: Handler, next: Arc<AtomicU32>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= MESSAGES {
            return;
        }
        loop {
            let wanted = vec![Wanted::new(key(number))];
            let claim = Claim::new(Nonce::random(), LEASE, wanted);
            match store.claim(&claim).await.map(|mut verdicts| verdicts.pop()) {
                Ok(Some(Verdict::Run(lease))) => handler.run(&store, lease).await,
                Ok(Some(Verdict::Replay(_))) => break,
                Ok(_) | Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

/// Writes down when a run begins and ends.
struct Handler {
    client: Client,
    begin: Statement,
    end: Statement,
}

impl Handler {
    async fn open(table: &str) -> Self {
        let client = client(&database::url()).await;
        let begin = format!(
            "INSERT INTO {table}_runs SELECT id, token, lease_until, clock_timestamp(), NULL \
             FROM {table} WHERE id = $1 AND token = $2"
        );
        let end = format!(
            "UPDATE {table}_runs SET ended = clock_timestamp() WHERE id = $1 AND token = $2"
        );
        Self {
            begin: client.prepare(&begin).await.unwrap(),
            end: client.prepare(&end).await.unwrap(),
            client,
        }
    }

    async fn run(&self, store: &PostgresStore, lease: Lease) {
        let (id, token) = (lease.key().id().to_owned(), lease.token().number());
        let began = self
            .client
            .execute(&self.begin, &[&id, &token])
            .await
            .unwrap();
        if began == 0 {
            // It lapsed and was taken over before it began.
            return;
        }
        sleep(Duration::from_millis(2)).await;
        self.client
            .execute(&self.end, &[&id, &token])
            .await
            .unwrap();
        let end = lease.record(record(&token.to_string()), Keep::For(LONG));
        drop(store.settle(&[end]).await);
    }
}
