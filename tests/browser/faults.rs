//! Lost answers, reloads, closed tabs, a train, a server that dies: each message is there once.

use std::time::Duration;

use crate::chat::{Chat, pass};
use crate::lossy::Fate;

#[tokio::test]
async fn lost_answers_are_asked_for_until_one_comes() {
    let fates = |number| match number {
        0 => Fate::LoseAnswer,
        1 => Fate::CutAnswer,
        2 => Fate::LoseRequest,
        3 => Fate::Double,
        _ => Fate::Pass,
    };
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], fates).await else {
        return;
    };
    chat.send("hello").await;
    chat.all_sent(1).await;
    assert_eq!(chat.proxy.posts(), 4);
    assert!(
        chat.proxy
            .keys()
            .iter()
            .all(|key| *key == chat.proxy.keys()[0])
    );
    assert_eq!(chat.server.count("runs").await, 1);
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn a_reload_in_the_middle_of_a_send_loses_and_doubles_nothing() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "1500")], pass).await else {
        return;
    };
    chat.send("hello").await;
    chat.counted("runs", 1).await;
    chat.window().refresh().await.unwrap();
    chat.all_sent(1).await;
    assert!(
        chat.proxy.posts() >= 2,
        "the page asked again after its reload"
    );
    assert_eq!(chat.server.count("runs").await, 1);
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn a_tab_that_is_closed_in_the_middle_of_a_send_leaves_it_to_the_next() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], stall_the_first).await else {
        return;
    };
    let first = chat.window().window().await.unwrap();
    chat.send("hello").await;
    chat.posted(1).await;
    let next = chat.window().new_tab().await.unwrap();
    chat.window().switch_to_window(first).await.unwrap();
    chat.window().close_window().await.unwrap();
    chat.window().switch_to_window(next).await.unwrap();
    chat.go("").await;
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn three_messages_written_offline_arrive_in_order_when_online() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], pass).await else {
        return;
    };
    chat.browser.offline(true).await;
    for text in ["one", "two", "three"] {
        chat.send(text).await;
    }
    chat.shows(|bubbles| bubbles.len() == 3 && bubbles[0].contains("waiting for the network"))
        .await;
    assert_eq!(chat.texts().await, [""; 0]);
    chat.browser.offline(false).await;
    chat.ends_with(&["one", "two", "three"]).await;
}

#[tokio::test]
async fn a_server_that_is_killed_and_started_again_has_the_message_once() {
    let settings = [("DELAY_MS", "700"), ("LEASE_MS", "1000")];
    let Some(mut chat) = Chat::open(&settings, pass).await else {
        return;
    };
    chat.send("hello").await;
    chat.counted("runs", 1).await;
    chat.server.kill().await;
    chat.shows(|bubbles| bubbles.iter().any(|it| it.contains("again in")))
        .await;
    chat.server.restart().await;
    chat.all_sent(1).await;
    assert_eq!(chat.server.count("runs").await, 2, "the first run was cut");
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_asked_for_again() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], stall_the_first).await else {
        return;
    };
    chat.go("?timeout=500").await;
    chat.send("hello").await;
    chat.ends_with(&["hello"]).await;
}

fn stall_the_first(number: usize) -> Fate {
    match number {
        0 => Fate::Late(Duration::from_mins(10)),
        _ => Fate::Pass,
    }
}
