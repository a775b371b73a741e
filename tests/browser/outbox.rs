//! What the user does: one key for each click on Send, however often the finger slips and however
//! many tabs are open; two for the same word said twice.

use thirtyfour::prelude::*;

use crate::chat::{Chat, pass};
use crate::lossy::Fate;

#[tokio::test]
async fn a_double_click_on_send_is_one_message() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], pass).await else {
        return;
    };
    chat.element("#text")
        .await
        .send_keys("hello")
        .await
        .unwrap();
    let send = chat.element("#send").await;
    let chain = chat.window().action_chain();
    chain.double_click_element(&send).perform().await.unwrap();
    chat.all_sent(1).await;
    assert_eq!(chat.proxy.posts(), 1);
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn the_same_word_sent_twice_on_purpose_is_two_messages() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], pass).await else {
        return;
    };
    chat.send("ok").await;
    chat.send("ok").await;
    chat.ends_with(&["ok", "ok"]).await;
}

#[tokio::test]
async fn two_tabs_send_what_is_in_their_outbox_once() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "400")], pass).await else {
        return;
    };
    two_tabs(&chat, "").await;
    chat.send("hello").await;
    chat.all_sent(1).await;
    assert_eq!(chat.proxy.posts(), 1, "the second tab left it to the first");
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn two_tabs_that_send_the_same_at_once_make_one_message() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "2000")], pass).await else {
        return;
    };
    two_tabs(&chat, "?locks=off").await;
    chat.send("hello").await;
    // Without locks both tabs send, the second while the first one's is running.
    chat.posted(2).await;
    chat.all_sent(1).await;
    assert_eq!(chat.server.count("runs").await, 1);
    chat.ends_with(&["hello"]).await;
}

/// Two tabs at the page; commands go to the second.
async fn two_tabs(chat: &Chat, query: &str) {
    chat.go(query).await;
    let second = chat.window().new_tab().await.unwrap();
    chat.window().switch_to_window(second).await.unwrap();
    chat.go(query).await;
}

#[tokio::test]
async fn a_refused_message_is_tried_again_under_its_key_or_sent_as_new_under_another() {
    let refuse = |number| match number {
        0 | 1 => Fate::Refuse(422, "This key belongs to another request"),
        _ => Fate::Pass,
    };
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], refuse).await else {
        return;
    };
    chat.send("hello").await;
    failed(&chat).await;
    assert_eq!(chat.proxy.posts(), 1, "a 422 is not sent again by itself");
    press(&chat, "Try again").await;
    failed_after(&chat, 2).await;
    press(&chat, "Send as new").await;
    chat.all_sent(1).await;
    let keys = chat.proxy.keys();
    assert!(
        keys.len() == 3 && keys[0] == keys[1] && keys[1] != keys[2],
        "{keys:?}"
    );
    chat.ends_with(&["hello"]).await;
}

#[tokio::test]
async fn a_refused_message_does_not_hold_up_the_next() {
    let refuse = |number| match number {
        0 => Fate::Refuse(400, "No"),
        _ => Fate::Pass,
    };
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], refuse).await else {
        return;
    };
    chat.send("one").await;
    chat.send("two").await;
    chat.shows(|bubbles| {
        let shown = bubbles.join("\n");
        bubbles.len() == 2 && shown.contains("failed") && shown.contains('✓')
    })
    .await;
    assert_eq!(chat.texts().await, ["two"]);
    press(&chat, "Try again").await;
    chat.ends_with(&["two", "one"]).await;
}

async fn failed(chat: &Chat) {
    chat.shows(|bubbles| bubbles.iter().any(|it| it.contains("failed")))
        .await;
}

async fn failed_after(chat: &Chat, posts: usize) {
    chat.shows(|bubbles| {
        chat.proxy.posts() == posts && bubbles.iter().any(|it| it.contains("failed"))
    })
    .await;
}

/// Clicks a button of the message that failed.
async fn press(chat: &Chat, label: &str) {
    let buttons = format!("//div[@class='acts']/button[text()='{label}']");
    let button = chat.window().find(By::XPath(buttons)).await.unwrap();
    button.click().await.unwrap();
}
