//! The page's panel, and the picture in the README, made by `docs/screenshot.sh`.

use std::path::PathBuf;

use crate::chat::{Chat, pass};
use crate::lossy::Fate;

#[tokio::test]
async fn the_pages_own_network_makes_no_duplicates() {
    let Some(chat) = Chat::open(&[("DELAY_MS", "20")], pass).await else {
        return;
    };
    for (fault, text, posts) in [
        ("response", "its answer is lost", 2),
        ("request", "it is lost itself", 3),
        ("double", "it is there twice", 5),
        ("none", "nothing is wrong", 6),
    ] {
        chat.weather(fault).await;
        chat.send(text).await;
        chat.shows(|bubbles| {
            let last = bubbles.last();
            last.is_some_and(|it| it.starts_with(text) && it.contains('✓'))
        })
        .await;
        assert_eq!(chat.proxy.posts(), posts, "{fault}");
    }
    let texts = chat.texts().await;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(texts.len(), 4);
    chat.ends_with(&texts).await;
}

/// `SCREENSHOT` names the file to write; without it nothing is done.
#[tokio::test]
async fn the_page_is_as_the_readme_shows_it() {
    let Some(path) = std::env::var_os("SCREENSHOT").map(PathBuf::from) else {
        return;
    };
    let fates = |number| match number {
        6 => Fate::Refuse(403, "Links are not allowed here"),
        _ => Fate::Pass,
    };
    let chat = Chat::open(&[("DELAY_MS", "20")], fates).await;
    let chat = chat.expect("a browser");
    chat.browser.size(1240, 860, 1.5).await;
    chat.go("?user=ben").await;
    chat.send("Are we still on for Friday?").await;
    chat.send("I could book a table for four, at seven.").await;
    chat.all_sent(2).await;

    chat.go("?user=ann").await;
    chat.weather("response").await;
    chat.send("Yes, book it!").await;
    sent(&chat, "Yes, book it!").await;
    chat.weather("double").await;
    chat.send("I will bring the cake.").await;
    sent(&chat, "I will bring the cake.").await;
    chat.send("This is the place: https://example.org").await;
    chat.shows(|bubbles| bubbles.iter().any(|it| it.contains("failed")))
        .await;
    chat.weather("delay").await;
    chat.send("See you there").await;
    chat.shows(|bubbles| bubbles.last().is_some_and(|it| it.contains("attempt 1")))
        .await;
    chat.browser.screenshot(&path).await;
    chat.browser.quit().await;
}

async fn sent(chat: &Chat, text: &str) {
    chat.shows(|bubbles| {
        let sent = |it: &String| it.starts_with(text) && it.contains('✓');
        bubbles.iter().any(sent)
    })
    .await;
}
