//! A server, a proxy before it and a browser at the page, with what a person does there.

use std::time::Duration;

use thirtyfour::prelude::*;
use tokio::time::{Instant, sleep};

use crate::chromium::Chromium;
use crate::lossy::{Fate, Lossy};
use crate::server::Server;

/// Longer than all attempts of a message; reached only when something hangs.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Chat {
    pub(crate) server: Server,
    pub(crate) proxy: Lossy,
    pub(crate) browser: Chromium,
}

impl Chat {
    /// A page whose requests pass a proxy that does to each POST what `fate` says.
    pub(crate) async fn open(
        settings: &[(&'static str, &str)],
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Option<Self> {
        let browser = Chromium::start().await?;
        let server = Server::start(settings).await;
        let proxy = Lossy::before(server.address(), fate).await;
        let chat = Self {
            server,
            proxy,
            browser,
        };
        // Left while it opens its outbox for the first time.
        chat.go_at_once("").await;
        chat.go("").await;
        Some(chat)
    }

    pub(crate) fn window(&self) -> &WebDriver {
        self.browser.window()
    }

    /// Opens the page in the current window, and waits until it knows what it holds.
    pub(crate) async fn go(&self, query: &str) {
        self.go_at_once(query).await;
        self.element("#messages[aria-busy=false]").await;
    }

    /// Opens the page in the current window.
    pub(crate) async fn go_at_once(&self, query: &str) {
        let url = format!("http://{}/{query}", self.proxy.address);
        self.window().goto(url).await.unwrap();
    }

    /// The first element of this kind, as soon as there is one.
    pub(crate) async fn element(&self, css: &str) -> WebElement {
        let query = self.window().query(By::Css(css));
        let often = Duration::from_millis(20);
        query.wait(PATIENCE, often).first().await.unwrap()
    }

    /// Chooses what the page's own network does to the next message.
    pub(crate) async fn weather(&self, fault: &str) {
        let choice = format!("#weather [value={fault}]");
        self.element(&choice).await.click().await.unwrap();
    }

    /// Types a text and hits Send.
    pub(crate) async fn send(&self, text: &str) {
        self.element("#text").await.send_keys(text).await.unwrap();
        self.element("#send").await.click().await.unwrap();
    }

    /// The texts that the server has, each as often as it has it.
    pub(crate) async fn texts(&self) -> Vec<String> {
        let messages = self.server.read("/chat/1/messages").await;
        let texts = messages.as_array().unwrap().iter();
        texts
            .map(|it| it["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What the page shows of each message: its text, state and note.
    pub(crate) async fn bubbles(&self) -> Vec<String> {
        let script = "return [...document.querySelectorAll('#messages li:not(.empty)')]
            .map((item) => item.innerText.replaceAll('\\n', ' | '))";
        let shown = self.window().execute(script, Vec::new()).await.unwrap();
        let shown: Vec<String> = serde_json::from_value(shown.json().clone()).unwrap();
        shown
    }

    /// Waits until the page shows so many messages, and all of them as sent.
    pub(crate) async fn all_sent(&self, count: usize) {
        self.shows(|bubbles| {
            bubbles.len() == count
                && bubbles
                    .iter()
                    .all(|it| it.contains("sent") && it.contains('✓'))
        })
        .await;
    }

    /// Waits until the bubbles are as told.
    pub(crate) async fn shows(&self, right: impl Fn(&[String]) -> bool) {
        let began = Instant::now();
        loop {
            let bubbles = self.bubbles().await;
            if right(&bubbles) {
                return;
            }
            if began.elapsed() > PATIENCE {
                let whole = self.element("body").await.text().await.unwrap();
                panic!("the page shows {bubbles:#?}, and in all:\n{whole}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until one of the numbers at `/stats` is reached.
    pub(crate) async fn counted(&self, what: &str, least: u64) {
        let began = Instant::now();
        while self.server.count(what).await < least {
            assert!(began.elapsed() < PATIENCE, "{what} does not reach {least}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the proxy has seen so many POSTs.
    pub(crate) async fn posted(&self, least: usize) {
        let began = Instant::now();
        while self.proxy.posts() < least {
            assert!(began.elapsed() < PATIENCE, "fewer than {least} POSTs");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Each text once on the server and on the page, in order; then the browser ends.
    pub(crate) async fn ends_with(self, texts: &[&str]) {
        self.all_sent(texts.len()).await;
        assert_eq!(self.texts().await, texts);
        let shown = self.bubbles().await;
        let pairs = shown.iter().zip(texts);
        assert!(
            pairs.clone().all(|(shown, text)| shown.starts_with(text)),
            "{shown:#?}"
        );
        assert_eq!(self.element("#duplicates").await.text().await.unwrap(), "0");
        self.browser.quit().await;
    }
}

/// All that reaches the proxy passes.
pub(crate) fn pass(_: usize) -> Fate {
    Fate::Pass
}
