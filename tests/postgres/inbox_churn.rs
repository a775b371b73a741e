//! The inbox under everything at once: no deadlock reaches a caller and nothing is out of place;
//! plans do not go wrong; the tables of a busy inbox stay small.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_postgres::Client;
use tower_idempotency::Conversation;
use tower_idempotency::store::{
    Arrival, Behind, Ended, Onward, PostgresStore, Queue, Report, Store, Then, Turn,
};

use crate::database::{self, Schema};
use crate::fixture::{fresh, open, options};
use crate::hand::{LONG, until};
use crate::inbox::{accept, done, message, take};

/// Handles the messages of a turn: most are done, some fail, some die.
async fn handle(store: &PostgresStore, mut turn: Turn, count: &AtomicUsize) {
    while let Some(first) = turn.messages.first() {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let (attempt, fault) = (first.attempt, "failed".to_owned());
        let later = |behind| Ended::Later {
            after: Duration::from_millis(1),
            attempt,
            fault: fault.clone(),
            behind,
        };
        let ended = match number % 16 {
            0 => later(Behind::Wait),
            1 => later(Behind::Pass),
            2 => Ended::Dead {
                attempt,
                fault: fault.clone(),
            },
            _ => Ended::Done,
        };
        let then = if number.is_multiple_of(7) {
            Then::GiveBack
        } else {
            Then::Read(3)
        };
        let report = Report::new(turn.hold, first.place, ended, then);
        match store.report(&[report]).await.unwrap().pop().unwrap() {
            Onward::Next(messages) => turn.messages = messages,
            _ => return,
        }
    }
}

/// Takes and handles, and does what else is done to an inbox, until it is told to stop.
async fn work(store: PostgresStore, count: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        for turn in store.take(5, 3, LONG).await.unwrap() {
            store.renew_turns(&[turn.hold], LONG).await.unwrap();
            handle(&store, turn, &count).await;
        }
        let letters = store.dead(None, 10).await.unwrap();
        let deaths: Vec<_> = letters.iter().map(|letter| letter.death).collect();
        store.redrive(&deaths).await.unwrap();
        store.sweep(100).await.unwrap();
    }
}

/// Sends batches, each in part a copy of what another sends, and forgets conversations.
async fn send(store: PostgresStore, name: usize) {
    for batch in 0..50 {
        let one = |n: usize| {
            let of = format!("c{}", (n * 7 + batch) % 12);
            message(&of, &format!("{name}-{batch}-{n}"))
        };
        let arrivals: Vec<Arrival> = (0..10).map(one).collect();
        store.accept(&arrivals, None).await.unwrap();
        if batch % 10 == 0 {
            let gone = Conversation::new("postgres", "", &format!("c{}", batch % 12));
            store.forget(&gone).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_at_once_leaves_nothing_behind() {
    let (store, schema) = fresh().await;
    let stores = [
        store.clone(),
        open(&database::url(), &options(&schema)).await,
    ];
    let (count, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut workers = JoinSet::new();
    let mut senders = JoinSet::new();
    for number in 0..6 {
        let store = &stores[number % 2];
        workers.spawn(work(store.clone(), Arc::clone(&count), Arc::clone(&stop)));
        senders.spawn(send(store.clone(), number / 2));
    }
    senders.join_all().await;
    until("all is handled", async || {
        let backlog = store.backlog().await.unwrap();
        (backlog.waiting + backlog.dead == 0).then_some(())
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    workers.join_all().await;
    let client = database::client(&database::url()).await;
    let lines = format!("SELECT FROM {}_line", schema.table());
    assert_eq!(client.query(&lines, &[]).await.unwrap().len(), 0);
}

/// What the server counted on a table.
#[derive(Debug)]
struct Counted {
    table: String,
    inserted: i64,
    read_unasked: i64,
    entries_read: i64,
    scans: i64,
}

async fn count(client: &Client, schema: &Schema, rows: i64) -> Vec<Counted> {
    let sql = "SELECT t.relname, n_tup_ins, seq_tup_read, sum(i.idx_tup_read)::bigint, \
        sum(i.idx_scan)::bigint FROM pg_stat_user_tables t \
        JOIN pg_stat_user_indexes i USING (relid) WHERE t.schemaname = $1 GROUP BY 1, 2, 3";
    let name = schema.table().split('.').next().unwrap().to_owned();
    until("the server has counted", async || {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let found = client.query(sql, &[&name]).await.unwrap();
        let counted: Vec<Counted> = found
            .iter()
            .map(|row| Counted {
                table: row.get(0),
                inserted: row.get(1),
                read_unasked: row.get(2),
                entries_read: row.get(3),
                scans: row.get(4),
            })
            .filter(|counted| counted.table.starts_with("idempotency_"))
            .collect();
        let messages = counted.iter().find(|c| c.table == "idempotency_message")?;
        (messages.inserted >= rows).then_some(counted)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_that_were_made_on_empty_tables_serve_a_full_inbox() {
    let (store, schema) = fresh().await;
    let client = database::client(&database::url()).await;
    for table in ["seen", "life", "line", "message", "dead"] {
        let analyze = format!("VACUUM ANALYZE {}_{table}", schema.table());
        client.batch_execute(&analyze).await.unwrap();
    }
    for number in 0..8 {
        accept(&store, &[message(&number.to_string(), &number.to_string())]).await;
    }
    for turn in take(&store).await {
        store.report(&[done(&turn)]).await.unwrap();
    }
    for batch in 0..100 {
        let arrivals: Vec<Arrival> = (0..100)
            .map(|n| {
                message(
                    &format!("c{}", batch * 50 + n % 50),
                    &format!("{batch}-{n}"),
                )
            })
            .collect();
        accept(&store, &arrivals).await;
        store.accept(&arrivals[..10], Some(LONG)).await.unwrap();
    }
    for _ in 0..20 {
        let turns = store.take(100, 16, LONG).await.unwrap();
        let holds: Vec<_> = turns.iter().map(|turn| turn.hold).collect();
        store.renew_turns(&holds, LONG).await.unwrap();
        let reports: Vec<Report> = turns.iter().map(done).collect();
        store.report(&reports).await.unwrap();
    }
    for counted in count(&client, &schema, 10_000).await {
        assert_eq!(counted.read_unasked, 0, "{counted:?}");
        assert!(counted.entries_read <= counted.scans * 4, "{counted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_inbox_is_vacuumed() {
    let (store, schema) = fresh().await;
    let client = database::client(&database::url()).await;
    let name = schema.table().split('.').next().unwrap().to_owned();
    let vacuums = "SELECT relname::text FROM pg_stat_user_tables \
        WHERE schemaname = $1 AND vacuum_count > 0 ORDER BY relname";
    let mut batch = 0;
    let tables = until("the tables are vacuumed", async || {
        let arrivals: Vec<Arrival> = (0..100)
            .map(|n| message(&n.to_string(), &format!("{batch}-{n}")))
            .collect();
        batch += 1;
        accept(&store, &arrivals).await;
        let reports: Vec<Report> = take(&store).await.iter().map(done).collect();
        store.report(&reports).await.unwrap();
        let rows = client.query(vacuums, &[&name]).await.unwrap();
        (rows.len() == 2).then_some(rows)
    })
    .await;
    let names: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["idempotency_line", "idempotency_message"]);
}
