//! On a real SQLite.

use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use tower_idempotency::store::{Queue, SqliteStore};

use crate::page::sql_behind;
use crate::sample::{begin, fill_inbox, freed};

/// A store, and the shell at its file.
fn fresh() -> (SqliteStore, Connection, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    let store = SqliteStore::open(&file).unwrap();
    (store, Connection::open(&file).unwrap(), folder)
}

fn rows(shell: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = shell.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
    rows.unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_key_is_found_by_its_digits_and_its_parts_in_line_and_in_the_inbox() {
    let (store, shell, _folder) = fresh();
    begin(&store).await;
    fill_inbox(&store).await;
    let blocks = sql_behind("### SQLite");
    let found: Vec<_> = blocks.iter().map(|sql| rows(&shell, sql)).collect();
    let [by_parts, by_digits, running, in_inbox] = &found[..] else {
        panic!("{} blocks", found.len());
    };
    let text = |text: &str| Value::Text(text.to_owned());
    assert!(by_parts[0].contains(&text("running")));
    assert_eq!(by_digits[0][0], text("running"));
    assert_eq!(
        (&running[0][2], &running[0][5]),
        (&text("wamid.A"), &Value::Integer(0))
    );
    assert_eq!(in_inbox[0][0], text("waiting"));
}

#[tokio::test]
async fn effects_that_wait_are_found() {
    let (store, shell, _folder) = fresh();
    fill_inbox(&store.outbox().unwrap()).await;
    let sql = sql_behind("SQLite, all that is not done:");
    let open = rows(&shell, sql[0]);
    assert_eq!(open.len(), 2);
    assert!(
        open.iter()
            .any(|row| row[1] == Value::Text("wamid.A".to_owned()))
    );
}

#[tokio::test]
async fn a_stuck_key_is_freed() {
    let (store, shell, _folder) = fresh();
    let stuck = begin(&store).await;
    for sql in sql_behind("SQLite, as one transaction:") {
        shell.execute_batch(sql).unwrap();
    }
    freed(&store, stuck).await;
}
