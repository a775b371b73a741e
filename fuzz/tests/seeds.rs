//! Each property holds for each seed and for many mutations of it, the same in every run: what can
//! be had without a fuzzer.

use tower_idempotency_fuzz::{channels, cut, forms, json, seeds, signatures, xml};

/// Mutations of each seed.
const MUTATIONS: u64 = 100;

/// What a mutation writes over a place, beside single bytes.
const WORDS: [&[u8]; 12] = [
    b"\"id\":", b"{", b"}", b"[", b"]", b",", b"\"", b"\\u0000", b"\xff", b"&id=", b"<id>",
    b"</id>",
];

/// A small generator of numbers: xorshift.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// Cuts, doubles or overwrites a place, or puts a word there.
    fn mutate(&mut self, data: &mut Vec<u8>) {
        let from = self.below(data.len() + 1);
        let to = (from + self.below(12)).min(data.len());
        match self.next() % 4 {
            0 => drop(data.drain(from..to)),
            1 => {
                let piece = data[from..to].to_vec();
                drop(data.splice(from..from, piece));
            }
            2 => drop(data.splice(from..to, WORDS[self.below(WORDS.len())].to_vec())),
            _ => {
                let byte = u8::try_from(self.next() % 256).unwrap();
                data[from..to].fill(byte);
            }
        }
    }
}

fn holds(target: &str, check: fn(&[u8])) {
    let seeds = seeds::of(target);
    assert!(seeds.len() >= 2, "{target}: {} seeds", seeds.len());
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    for (_, seed) in seeds {
        check(&seed);
        for _ in 0..MUTATIONS {
            let mut data = seed.clone();
            for _ in 0..=chance.next() % 4 {
                chance.mutate(&mut data);
            }
            check(&data);
        }
    }
}

#[test]
fn every_channel_owes_an_answer() {
    holds("channels", channels::check);
}

#[test]
fn what_is_cut_leaves_all_other_bytes() {
    holds("cut", cut::check);
}

#[test]
fn a_form_is_read_as_it_says() {
    holds("forms", forms::check);
}

#[test]
fn ids_are_those_that_a_plain_walk_finds() {
    holds("json", json::check);
}

#[test]
fn nothing_is_accepted_that_was_not_signed() {
    holds("signatures", signatures::check);
}

#[test]
fn two_readers_of_xml_agree() {
    holds("xml", xml::check);
}
