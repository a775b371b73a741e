//! The memory store: the time of a claim with its settlement and of a replay, and, while a store
//! is filled to a million keys and emptied again, the longest single claim and the bytes per key.
//!
//! ```text
//! cargo bench --bench memory
//! ```

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use futures_util::FutureExt;
use http::{HeaderMap, StatusCode};
use tower_idempotency::store::{Claim, MemoryStore, Nonce, Store, Verdict, Wanted};
use tower_idempotency::{Keep, Key, Record, Whole};

/// The ids of a WhatsApp message are this long.
const ID: &str = "wamid.HBgLMTY1MDM4NzkzNDgVAgARGBI3RTJBMjA0";

const HOUR: Duration = Duration::from_hours(1);

fn main() {
    let filling = std::env::args().all(|arg| arg != "--test");
    if filling {
        report(1_000_000);
    }
    divan::main();
}

#[divan::bench(args = [1, 100_000, 1_000_000])]
fn claim_and_record(bencher: Bencher<'_, '_>, keys: u32) {
    let store = filled(keys);
    let record = record();
    let mut number = keys;
    bencher
        .with_inputs(|| {
            number += 1;
            claim(number)
        })
        .bench_local_values(|claim| finish(&store, &claim, Keep::For(HOUR), &record));
}

#[divan::bench(args = [1, 100_000, 1_000_000])]
fn replay(bencher: Bencher<'_, '_>, keys: u32) {
    let store = filled(keys);
    let mut number = 0_u32;
    bencher
        .with_inputs(|| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            claim(number % keys)
        })
        .bench_local_values(|claim| {
            let verdicts = store.claim(black_box(&claim)).now_or_never().unwrap();
            assert!(matches!(verdicts.unwrap().as_slice(), [Verdict::Replay(_)]));
        });
}

/// Fills a store, lets all rows end, and empties it by claims: the longest claim of each.
fn report(keys: u32) {
    let store = MemoryStore::new();
    let before = resident();
    let record = record();
    let keep = Keep::For(Duration::from_secs(1));
    let filling = longest(0..keys, |claim| finish(&store, claim, keep, &record));
    let per_key = (resident() - before) / u64::from(keys);
    println!("filling:  {keys} keys, longest claim {filling:?}, {per_key} bytes per key");
    let ended = Instant::now() + Duration::from_secs(1);
    while Instant::now() < ended {
        std::hint::spin_loop();
    }
    let emptying = longest(keys..keys + keys / 2, |claim| {
        let verdicts = store.claim(claim).now_or_never().unwrap();
        black_box(verdicts.unwrap());
    });
    println!(
        "emptying: longest claim {emptying:?}, {} keys left",
        store.keys()
    );
}

/// The longest time that one call took.
fn longest(numbers: std::ops::Range<u32>, mut call: impl FnMut(&Claim)) -> Duration {
    let claims: Vec<Claim> = numbers.map(claim).collect();
    let time = |claim| {
        let began = Instant::now();
        call(claim);
        began.elapsed()
    };
    claims.iter().map(time).max().unwrap_or_default()
}

fn filled(keys: u32) -> MemoryStore {
    let store = MemoryStore::bounded(usize::MAX, usize::MAX);
    let record = record();
    for number in 0..keys {
        finish(&store, &claim(number), Keep::For(HOUR), &record);
    }
    store
}

fn finish(store: &MemoryStore, claim: &Claim, keep: Keep, record: &Arc<Record>) {
    let verdicts = store.claim(black_box(claim)).now_or_never().unwrap();
    let Some(Verdict::Run(lease)) = verdicts.unwrap().pop() else {
        return;
    };
    let settlement = lease.record(Arc::clone(record), keep);
    let settled = store.settle(&[settlement]).now_or_never().unwrap();
    black_box(settled.unwrap());
}

fn claim(number: u32) -> Claim {
    let key = Key::new("whatsapp", "1065", &[format!("{ID}{number}")]);
    Claim::new(Nonce::random(), HOUR, vec![Wanted::new(key)])
}

fn record() -> Arc<Record> {
    let whole = Whole {
        frames: vec![vec![b'x'; 1024].into()],
        ..Whole::default()
    };
    Arc::new(Record::new(StatusCode::OK, HeaderMap::new(), whole))
}

/// This process's resident memory in bytes; nothing where the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}
