//! The table: what a first message and its repeat get, the same on every server and by every
//! peer.

use crate::peer::h2::H2;
use crate::peer::raw::Raw;
use crate::peer::{Ask, Seen, curl};
use crate::server::{Kind, Server, layer};

/// What a repeat gets.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The same, marked, from one run.
    TheSame,
    /// Another run.
    AnotherRun,
    /// The word that the answer was not kept.
    NotKept,
}

struct Case {
    answer: &'static str,
    then: Then,
    /// What the first answer must be.
    first: fn(&Seen) -> bool,
}

const fn case(answer: &'static str, then: Then, first: fn(&Seen) -> bool) -> Case {
    Case {
        answer,
        then,
        first,
    }
}

const CASES: &[Case] = &[
    case("", Then::TheSame, |seen| {
        seen.status == 200 && seen.body == b"hello back"
    }),
    case("slow", Then::TheSame, |seen| seen.body == b"at last"),
    case("binary", Then::TheSame, |seen| {
        seen.body == (0..=255).collect::<Vec<u8>>()
    }),
    case("chunks", Then::TheSame, |seen| {
        seen.body == b"ab" && seen.all("content-length").is_empty()
    }),
    case("empty stream", Then::TheSame, |seen| seen.body.is_empty()),
    case("trailers", Then::TheSame, |seen| {
        seen.body == b"ab" && seen.trailers == [("x-sum".to_owned(), b"42".to_vec())]
    }),
    case("lines", Then::TheSame, |seen| {
        seen.all("x-a") == [b"1", b"2", b"1"]
            && seen.all("x-b") == [b"caf\xe9"]
            && seen.all("x-empty") == [b""]
    }),
    case("echo", Then::TheSame, |seen| seen.body == b"hello"),
    case("coded", Then::TheSame, |seen| {
        seen.all("content-encoding") == [b"gzip"]
    }),
    case("200", Then::TheSame, |seen| seen.body.is_empty()),
    case("201", Then::TheSame, |seen| seen.status == 201),
    case("204", Then::TheSame, |seen| seen.status == 204),
    case("205", Then::TheSame, |seen| seen.status == 205),
    case("304", Then::TheSame, |seen| seen.status == 304),
    case("length of another", Then::TheSame, |seen| {
        seen.status == 304
    }),
    case("see other", Then::TheSame, |seen| {
        seen.all("location") == [b"/elsewhere"]
    }),
    case("large", Then::NotKept, |seen| seen.body.len() == 100_000),
    case("large stream", Then::NotKept, |seen| {
        seen.body.len() == 150_000
    }),
    case("400", Then::AnotherRun, |seen| seen.status == 400),
    case("404", Then::AnotherRun, |seen| seen.status == 404),
    case("408", Then::AnotherRun, |seen| seen.status == 408),
    case("409", Then::AnotherRun, |seen| seen.status == 409),
    case("425", Then::AnotherRun, |seen| seen.status == 425),
    case("429", Then::AnotherRun, |seen| seen.status == 429),
    case("500", Then::AnotherRun, |seen| seen.status == 500),
    case("503", Then::AnotherRun, |seen| seen.status == 503),
];

#[derive(Clone, Copy, Debug)]
enum Peer {
    Raw,
    H2,
    Curl(&'static str),
}

impl Peer {
    /// The peers that can speak with a server.
    fn of(kind: Kind) -> Vec<Self> {
        let mut peers = Vec::new();
        if kind.speaks_http1() {
            peers.extend([Self::Raw, Self::Curl("--http1.1")]);
        }
        if kind.speaks_http2() {
            peers.extend([Self::H2, Self::Curl("--http2-prior-knowledge")]);
        }
        peers
    }

    /// Sends over a connection of its own. `None` if the peer is not installed.
    async fn send(self, server: &Server, ask: &Ask) -> Option<Seen> {
        match self {
            Self::Raw => {
                let ask = ask.clone().with("te", "trailers");
                Some(Raw::connect(server.address).await.ask(&ask).await)
            }
            Self::H2 => Some(H2::connect(server.address).await.ask(ask).await),
            Self::Curl(protocol) => {
                let options = [protocol, "--header", "te: trailers"];
                let seen = curl::ask(&curl::url(server.address), &options, ask).await?;
                Some(seen.unwrap())
            }
        }
    }
}

async fn the_table_holds_on(kind: Kind) {
    let server = Server::start(kind, layer().max_response(50_000)).await;
    for peer in Peer::of(kind) {
        for case in CASES {
            let before = server.app.runs();
            let ask = Ask::new(
                &format!("{peer:?} {}", case.answer).replace('"', ""),
                case.answer,
            );
            let Some(first) = peer.send(&server, &ask).await else {
                eprintln!("{peer:?} is not installed: skipped");
                break;
            };
            let second = peer.send(&server, &ask).await.unwrap();
            let runs = server.app.runs() - before;
            let context = format!("{kind:?} {peer:?} {:?}: {first:?} {second:?}", case.answer);
            assert!((case.first)(&first) && !first.is_replayed(), "{context}");
            match case.then {
                Then::TheSame => {
                    assert!(second.is_replayed() && runs == 1, "{runs} runs, {context}");
                    assert_eq!(second.unmarked(), first.unmarked(), "{context}");
                }
                Then::AnotherRun => {
                    assert!(!second.is_replayed() && runs == 2, "{runs} runs, {context}");
                    assert_eq!(second.status, first.status, "{context}");
                }
                Then::NotKept => {
                    assert!(second.text().contains("response-not-kept"), "{context}");
                    assert_eq!((second.status, runs), (409, 1), "{context}");
                }
            }
        }
    }
}

/// Field case B31.
#[tokio::test]
async fn the_table_holds_on_axum() {
    the_table_holds_on(Kind::Axum).await;
}

/// Field case B32.
#[tokio::test]
async fn the_table_holds_on_hyper_with_http_1() {
    the_table_holds_on(Kind::Hyper1).await;
}

/// Field case P22.
#[tokio::test]
async fn the_table_holds_on_hyper_with_http_2() {
    the_table_holds_on(Kind::Hyper2).await;
}

#[tokio::test]
async fn the_table_holds_on_tonic() {
    the_table_holds_on(Kind::Tonic).await;
}
