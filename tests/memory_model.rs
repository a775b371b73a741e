//! The memory store answers as a plain model does, whatever is asked in whatever order: claims of
//! several keys, renewals, settlements (late and doubled ones too), looks, forgetting, closing,
//! sweeping, and time that passes.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "helpers of tests"
)]

#[path = "memory_model/model.rs"]
mod model;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use proptest::prelude::*;
use tower_idempotency::store::{
    Claim, Hold, Lease, MemoryStore, Nonce, Settled, Settlement, Sight, Standing, Store, Token,
    Verdict, Wanted,
};
use tower_idempotency::{Conversation, Fingerprint, Keep, Key, Payload, Record, Whole};

use model::{Answer, Ask, Model, Seen};

#[derive(Clone, Debug)]
enum Step {
    Claim {
        asks: Vec<Ask>,
        nonce: u8,
        lease: u8,
    },
    /// The lease is the one that was granted so many grants ago.
    Renew {
        back: usize,
        lease: u8,
    },
    Record {
        backs: Vec<usize>,
        kept: Kept,
    },
    Release {
        backs: Vec<usize>,
    },
    Forget {
        conversation: u8,
    },
    Close {
        conversation: u8,
    },
    Sweep {
        limit: usize,
    },
    Wait {
        seconds: u8,
    },
}

impl Step {
    /// Whether the answer depends on which ended rows were cleared already: a settlement is told
    /// that it was applied before, a new message extends them. The model clears at once.
    fn sees_what_has_ended(&self) -> bool {
        match self {
            Self::Claim { asks, .. } => asks.iter().any(|ask| ask.conversation.is_some()),
            Self::Record { .. } | Self::Release { .. } | Self::Close { .. } => true,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Kept {
    For(u8),
    Idle(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let ask = (
        0..4_u8,
        prop::option::of(0..2_u8),
        prop::option::of(0..2_u8),
    )
        .prop_map(|(key, print, conversation)| Ask {
            key,
            print,
            conversation,
        });
    let asks = prop::collection::vec(ask, 1..4).prop_map(|mut asks| {
        asks.sort_by_key(|ask| ask.key);
        asks.dedup_by_key(|ask| ask.key);
        asks
    });
    let backs = || prop::collection::vec(0..6_usize, 1..3);
    let kept = prop_oneof![
        (1..9_u8).prop_map(Kept::For),
        (1..9_u8).prop_map(Kept::Idle)
    ];
    prop_oneof![
        6 => (asks, 0..3_u8, 1..6_u8)
            .prop_map(|(asks, nonce, lease)| Step::Claim { asks, nonce, lease }),
        1 => (0..6_usize, 1..6_u8).prop_map(|(back, lease)| Step::Renew { back, lease }),
        4 => (backs(), kept).prop_map(|(backs, kept)| Step::Record { backs, kept }),
        2 => backs().prop_map(|backs| Step::Release { backs }),
        1 => (0..2_u8).prop_map(|conversation| Step::Forget { conversation }),
        1 => (0..2_u8).prop_map(|conversation| Step::Close { conversation }),
        1 => (0..3_usize).prop_map(|limit| Step::Sweep { limit }),
        4 => (1..4_u8).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

proptest! {
    #[test]
    fn the_store_answers_as_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(follow(&steps));
    }
}

async fn follow(steps: &[Step]) {
    let mut pair = Pair {
        store: MemoryStore::new(),
        model: Model::default(),
        grants: Vec::new(),
        records: 0,
    };
    for step in steps {
        pair.step(step).await;
        pair.looks_agree().await;
    }
    pair.store.sweep(usize::MAX).await.unwrap();
    assert_eq!(pair.store.keys(), pair.model.rows());
    assert_eq!(pair.store.bytes(), pair.model.bytes());
}

/// The store and its model, asked the same.
struct Pair {
    store: MemoryStore,
    model: Model,
    grants: Vec<Hold>,
    records: u32,
}

impl Pair {
    async fn step(&mut self, step: &Step) {
        if step.sees_what_has_ended() {
            self.store.sweep(usize::MAX).await.unwrap();
        }
        match step {
            Step::Claim { asks, nonce, lease } => self.claim(asks, *nonce, *lease).await,
            Step::Renew { back, lease } => self.renew(*back, seconds(*lease)).await,
            Step::Record { backs, kept } => self.record(backs, *kept).await,
            Step::Release { backs } => {
                let holds = self.holds(backs);
                let releases = holds.iter().map(|hold| lease_of(hold).release());
                self.settle(&releases.collect::<Vec<_>>()).await;
            }
            Step::Forget { conversation } => {
                let concerned = self.store.forget(&name(*conversation)).await.unwrap();
                assert!(concerned >= self.model.forget(*conversation));
            }
            Step::Close { conversation } => {
                self.store.close(&name(*conversation)).await.unwrap();
                self.model.close(*conversation);
            }
            Step::Sweep { limit } => {
                let swept = self.store.sweep(*limit).await.unwrap();
                assert!(swept <= u64::try_from(*limit).unwrap());
            }
            Step::Wait { seconds } => {
                tokio::time::advance(self::seconds(*seconds)).await;
                self.model.now += self::seconds(*seconds);
            }
        }
    }

    async fn claim(&mut self, asks: &[Ask], nonce: u8, lease: u8) {
        let wanted = asks.iter().map(|ask| {
            let mut wanted = Wanted::new(key(ask.key));
            wanted.fingerprint = ask.print.map(print);
            wanted.conversation = ask.conversation.map(name);
            wanted
        });
        let claim = Claim::new(
            Nonce::from_bytes([nonce; 16]),
            seconds(lease),
            wanted.collect(),
        );
        let verdicts = self.store.claim(&claim).await.unwrap();
        assert_eq!(verdicts.len(), asks.len());
        for (verdict, ask) in verdicts.into_iter().zip(asks) {
            let expected = self.model.claim(*ask, nonce, seconds(lease));
            let answer = self.answer(ask.key, verdict);
            assert_eq!(answer, expected, "a claim of key {}", ask.key);
        }
    }

    /// The store's answer in the model's words. A new token must be the highest so far.
    fn answer(&mut self, number: u8, verdict: Verdict) -> Answer {
        match verdict {
            Verdict::Run(lease) => {
                assert_eq!(*lease.key(), key(number));
                let known = self.grants.iter().position(|hold| *hold == lease.hold());
                let grant = known.unwrap_or_else(|| {
                    let highest = self.grants.iter().map(|hold| hold.token).max();
                    assert!(Some(lease.token()) > highest, "a token did not rise");
                    self.grants.push(lease.hold());
                    self.grants.len() - 1
                });
                Answer::Run {
                    grant,
                    attempt: lease.attempt(),
                }
            }
            Verdict::Replay(record) => Answer::Replay(body(&record)),
            Verdict::Running { remaining } => Answer::Running(remaining),
            Verdict::Other { first } => Answer::Other(first.as_bytes()[0]),
            _ => unreachable!("an unknown verdict"),
        }
    }

    async fn renew(&mut self, back: usize, lease: Duration) {
        let hold = self.holds(&[back]).remove(0);
        let standings = self.store.renew(std::slice::from_ref(&hold), lease).await;
        let expected = match self.grant(&hold) {
            Some(grant) if self.model.renew(grant, lease) => Standing::Renewed,
            _ => Standing::Lost,
        };
        assert_eq!(standings.unwrap(), [expected]);
    }

    async fn record(&mut self, backs: &[usize], kept: Kept) {
        let keep = match kept {
            Kept::For(time) => Keep::For(seconds(time)),
            Kept::Idle(idle) => Keep::Conversation {
                idle: seconds(idle),
            },
        };
        self.records += 1;
        let record = record(self.records);
        let settlement = |hold: &Hold| lease_of(hold).record(Arc::clone(&record), keep);
        let settlements: Vec<Settlement> = self.holds(backs).iter().map(settlement).collect();
        self.settle(&settlements).await;
    }

    async fn settle(&mut self, settlements: &[Settlement]) {
        let settled = self.store.settle(settlements).await.unwrap();
        for (settlement, settled) in settlements.iter().zip(settled) {
            let grant = self.grant(&settlement.hold);
            let applied = grant.is_some_and(|grant| self.model.settle(grant, &settlement.end));
            assert_eq!(settled == Settled::Applied, applied, "{settlement:?}");
        }
    }

    async fn looks_agree(&self) {
        let keys: Vec<Key> = (0..4).map(key).collect();
        let sights = self.store.look(&keys).await.unwrap();
        for (number, sight) in (0..4).zip(sights) {
            let seen = match sight {
                Sight::Absent => Seen::Absent,
                Sight::Running { remaining } => Seen::Running(remaining),
                Sight::Done(record) => Seen::Done(body(&record)),
                _ => unreachable!("an unknown sight"),
            };
            assert_eq!(seen, self.model.look(number), "a look at key {number}");
        }
    }

    /// Earlier leases, or one that was never given.
    fn holds(&self, backs: &[usize]) -> Vec<Hold> {
        let hold = |back: &usize| {
            let at = self.grants.len().checked_sub(back + 1);
            at.map_or_else(
                || Hold::new(key(0), Token::new(-1)),
                |at| self.grants[at].clone(),
            )
        };
        backs.iter().map(hold).collect()
    }

    fn grant(&self, hold: &Hold) -> Option<usize> {
        self.grants.iter().position(|granted| granted == hold)
    }
}

fn seconds(number: u8) -> Duration {
    Duration::from_secs(number.into())
}

fn key(number: u8) -> Key {
    Key::new("model", "", &[number.to_string()])
}

fn name(conversation: u8) -> Conversation {
    Conversation::new("model", "", &conversation.to_string())
}

fn print(number: u8) -> Fingerprint {
    Fingerprint::from_bytes(&[number; Fingerprint::SIZE]).unwrap()
}

fn lease_of(hold: &Hold) -> Lease {
    Lease::new(hold.key.clone(), hold.token, 1)
}

fn record(number: u32) -> Arc<Record> {
    let whole = Whole {
        frames: vec![number.to_string().into()],
        ..Whole::default()
    };
    Arc::new(Record::new(StatusCode::OK, HeaderMap::new(), whole))
}

/// The number of a record; `None` for a tombstone.
fn body(record: &Record) -> Option<String> {
    match record.payload() {
        Payload::Whole(whole) => Some(String::from_utf8(whole.frames.concat()).unwrap()),
        _ => None,
    }
}
