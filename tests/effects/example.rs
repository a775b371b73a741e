//! The example `effects` does what it says.

use tokio::io::{AsyncBufReadExt, BufReader};

#[path = "../support/example.rs"]
mod program;

#[tokio::test]
async fn a_message_of_the_effects_example_is_stored_counted_and_notified_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("effects.db");
    let mut server = program::example("effects")
        .arg("127.0.0.1:0")
        .arg(&file)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let url = url.strip_prefix("listening on ").unwrap().to_owned();
    for key in ["1", "1", "2", "1"] {
        let request = reqwest::Client::new()
            .post(format!("{url}/messages"))
            .header("x-user", "ann")
            .header("idempotency-key", key)
            .body(format!("hello {key}"));
        let answer = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(answer, format!("stored as message {key}"));
    }
    let mut notified = Vec::new();
    while notified.len() < 2 {
        notified.push(lines.next_line().await.unwrap().unwrap());
    }
    notified.sort_unstable();
    for (line, text) in notified.iter().zip(["hello 1", "hello 2"]) {
        let expected = format!("notify: {text:?}, attempt 1, key ");
        assert!(line.starts_with(&expected), "{line}");
    }
    let tables = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT (SELECT count(*) FROM messages), (SELECT n FROM unread)";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let written: (i64, i64) = tables.query_row(sql, [], read).unwrap();
    assert_eq!(written, (2, 2));
}
