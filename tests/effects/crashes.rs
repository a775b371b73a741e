//! A process dies at chosen points: what is left, and what the next one makes of it.

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;
use tower_idempotency::store::connect;

use crate::chaos::{Sender, notified};
use crate::child::{POINTS, Server};
use crate::cluster::Cluster;
use crate::tables::Chat;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("chat.db").display());
    crash_points(&url, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgresql() {
    let cluster = Cluster::start(&["fsync = on"]);
    let folder = tempfile::tempdir().unwrap();
    crash_points(&cluster.url(), folder.path()).await;
}

/// Field cases B08, P61 and P87.
///
/// Each point has a message of its own, named after it, which kills its process there, once. What
/// is written is as much as the points before have left, and one more.
async fn crash_points(url: &str, folder: &Path) {
    drop(connect(url).await.unwrap());
    let chat = Chat::open(url);
    chat.make().await;
    let sender = Sender::new();
    for (done, point) in (0..).zip(POINTS) {
        let mut server = Server::start(url, folder, "");
        let first = sender.post(server.address, point).await;
        let dies_in_effect = point.ends_with("effect");
        // Where only the effect kills it, the answer may come first.
        assert!(first.is_none() || dies_in_effect, "{point}: {first:?}");
        while !server.has_ended() {
            sleep(Duration::from_millis(5)).await;
        }
        let is_committed = dies_in_effect || point == "after-commit";
        let written = done + i64::from(is_committed);
        let [messages, _, unread, notified_before, _] = chat.sums().await;
        assert_eq!((messages, unread), (written, written), "{point}");
        assert!(
            notified_before == done || point == "after-commit",
            "{point}"
        );
        let server = Server::start(url, folder, "");
        let again = sender.until_done(server.address, point).await;
        assert_eq!(again.is_replay, is_committed, "{point}: {again:?}");
        assert_eq!(again.body, format!("stored {point}"));
        notified(&chat, done + 1).await;
        assert_eq!(chat.sums().await, [done + 1; 5], "{point}");
    }
    // Elsewhere the call came twice where its process died after it; with one key.
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    for point in POINTS {
        let calls: Vec<_> = calls
            .lines()
            .filter(|call| call.starts_with(point))
            .collect();
        let expected = if point == "after-effect" { 2 } else { 1 };
        assert_eq!(calls.len(), expected, "{calls:?}");
        assert_eq!(calls.first(), calls.last());
    }
}
