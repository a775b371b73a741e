//! No statement reads a table from end to end, whatever the table held when its plan was made; and
//! renewals rewrite their rows in place.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::Client;
use tower_idempotency::store::{Claim, Lease, Nonce, PostgresStore, Store, Verdict, Wanted};
use tower_idempotency::{Conversation, Keep};

use crate::database;
use crate::fixture::fresh;
use crate::hand::{LONG, key, record, until};

/// What the server counted on a table.
#[derive(Debug)]
struct Counted {
    table: String,
    inserted: i64,
    updated: i64,
    in_place: i64,
    /// Rows that were read without an index.
    read_unasked: i64,
    scans: i64,
    entries_read: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_were_made_on_empty_tables_serve_full_ones() {
    let (store, schema) = fresh().await;
    let client = database::client(&database::url()).await;
    let name = schema.table().split('.').next().unwrap().to_owned();
    // What the planner knows best: there is nothing in the tables.
    for table in ["", "_conversation"] {
        let analyze = format!("VACUUM ANALYZE {}{table}", schema.table());
        client.batch_execute(&analyze).await.unwrap();
    }
    for number in 0..8 {
        run(&store, number..number + 1).await;
    }
    for number in 1..=4 {
        run(&store, number * 1000..number * 1000 + 256).await;
    }
    fill(&store, 10_000..30_000).await;
    let counted = count(&client, &name, 20_000).await;
    for table in &counted {
        assert_eq!(table.read_unasked, 0, "{table:?}");
        assert!(table.entries_read <= table.scans * 3, "{table:?}");
    }
    let rows = counted
        .iter()
        .find(|table| table.table == "idempotency")
        .unwrap();
    // Two of three updates extend leases. Of a page whose rows are all extended at once not all find
    // room.
    assert!(rows.in_place * 4 >= rows.updated, "{rows:?}");
}

/// Claims, looks, renews, repeats and records these messages, all by one call each.
async fn run(store: &PostgresStore, numbers: std::ops::Range<u32>) {
    let keys: Vec<_> = numbers.clone().map(key).collect();
    let wanted = |number: u32| {
        let conversation = Conversation::new("postgres", "", &(number / 10).to_string());
        Wanted::new(key(number)).conversation(conversation)
    };
    let claim = Claim::new(Nonce::random(), LONG, numbers.map(wanted).collect());
    let mut leases = Vec::new();
    for verdict in store.claim(&claim).await.unwrap() {
        match verdict {
            Verdict::Run(lease) => leases.push(lease),
            other => panic!("not granted: {other:?}"),
        }
    }
    store.look(&keys).await.unwrap();
    store.claim(&claim).await.unwrap();
    let holds: Vec<_> = leases.iter().map(Lease::hold).collect();
    store.renew(&holds, LONG).await.unwrap();
    let keep = |at: usize| match at % 2 {
        0 => Keep::For(LONG),
        _ => Keep::Conversation { idle: LONG },
    };
    let ends = leases.into_iter().enumerate();
    let ends: Vec<_> = ends
        .map(|(at, lease)| lease.record(record("done"), keep(at)))
        .collect();
    store.settle(&ends).await.unwrap();
    store.claim(&claim).await.unwrap();
}

/// Many messages, of which some wait for each other.
async fn fill(store: &PostgresStore, numbers: std::ops::Range<u32>) {
    let mut tasks = JoinSet::new();
    for begin in numbers.step_by(500) {
        let store = store.clone();
        tasks.spawn(async move {
            for number in (begin..begin + 500).step_by(50) {
                run(&store, number..number + 50).await;
            }
        });
        if tasks.len() == 8 {
            tasks.join_next().await.unwrap().unwrap();
        }
    }
    tasks.join_all().await;
}

/// The counters, once the server has gathered those of so many rows.
async fn count(client: &Client, schema: &str, rows: i64) -> Vec<Counted> {
    let sql = "SELECT t.relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, seq_tup_read, \
        sum(i.idx_scan)::bigint, sum(i.idx_tup_read)::bigint \
        FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid) \
        WHERE t.schemaname = $1 AND t.relname <> 'idempotency_version' \
        GROUP BY 1, 2, 3, 4, 5";
    until("the server has counted", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let found = client.query(sql, &[&schema]).await.unwrap();
        let counted: Vec<Counted> = found
            .iter()
            .map(|row| Counted {
                table: row.get(0),
                inserted: row.get(1),
                updated: row.get(2),
                in_place: row.get(3),
                read_unasked: row.get(4),
                scans: row.get(5),
                entries_read: row.get(6),
            })
            .collect();
        let all = counted.iter().find(|table| table.table == "idempotency")?;
        (all.inserted > rows && all.updated > 2 * rows).then_some(counted)
    })
    .await
}
