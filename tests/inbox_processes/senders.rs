//! Senders as they are: each message until it is acknowledged, and copies of it later.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use reqwest::Client;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Where the servers are at the moment.
pub(crate) type Addresses = Arc<Mutex<Vec<SocketAddr>>>;

/// Sends `messages` messages in each of `chats` conversations, one after the other in each, each
/// up to four times, the copies in any order after the first was acknowledged.
pub(crate) async fn send_all(addresses: &Addresses, chats: usize, messages: usize, seed: u64) {
    let client = client();
    let mut senders = JoinSet::new();
    for chat in 0..chats {
        let (client, addresses) = (client.clone(), Arc::clone(addresses));
        let mut random = StdRng::seed_from_u64(seed ^ u64::try_from(chat).unwrap());
        senders.spawn(async move {
            let mut copies: Vec<usize> = Vec::new();
            for number in 0..messages {
                send(&client, &addresses, chat, number).await;
                copies.extend(std::iter::repeat_n(number, random.random_range(0..4)));
                copies.shuffle(&mut random);
                // Some of the copies at once, the others much later.
                let later = copies.split_off(copies.len() / 2);
                send_each(&client, &addresses, chat, copies).await;
                copies = later;
            }
            send_each(&client, &addresses, chat, copies).await;
        });
    }
    senders.join_all().await;
}

pub(crate) fn client() -> Client {
    Client::builder()
        .timeout(Duration::from_secs(10))
        .build()
        .unwrap()
}

pub(crate) fn id(chat: usize, number: usize) -> String {
    format!("{chat}-{number:05}")
}

async fn send_each(client: &Client, addresses: &Addresses, chat: usize, numbers: Vec<usize>) {
    for number in numbers {
        send(client, addresses, chat, number).await;
    }
}

/// Sends one message again and again until somebody acknowledges it.
async fn send(client: &Client, addresses: &Addresses, chat: usize, number: usize) {
    let mut turn = chat + number;
    loop {
        let address = {
            let addresses = addresses.lock().unwrap();
            addresses[turn % addresses.len()]
        };
        if post(client, address, &chat.to_string(), &id(chat, number)).await {
            return;
        }
        turn += 1;
        sleep(Duration::from_millis(20)).await;
    }
}

/// Posts a message; gives whether it was acknowledged.
pub(crate) async fn post(client: &Client, address: SocketAddr, chat: &str, id: &str) -> bool {
    let body = json!({"id": id, "chat": chat, "text": "yes ".repeat(20)});
    let request = client.post(format!("http://{address}/hook"));
    let answer = request.body(body.to_string()).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}
