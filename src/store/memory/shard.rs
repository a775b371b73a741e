//! A part of the rows, with the queue of when they go.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use hashbrown::HashTable;

use crate::key::Key;
use crate::store::lease::Token;

use crate::store::memory::moment::Moment;
use crate::store::memory::row::Row;

#[derive(Default)]
pub(super) struct Shard {
    rows: HashTable<Box<Row>>,
    due: BinaryHeap<Reverse<Due>>,
}

/// When a row is looked at again. The token names the row: no two rows have the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Moment,
    hash: u64,
    token: Token,
}

/// What one step of clearing did.
pub(super) enum Step {
    /// No row's time has come.
    Idle,
    /// A row was looked at, and stays.
    Stays,
    /// A row's retention has ended, and it is out of the table.
    Gone(Box<Row>),
}

impl Shard {
    pub(super) fn find(&mut self, hash: u64, key: &Key) -> Option<&mut Row> {
        let row = self.rows.find_mut(hash, |row| row.key == *key)?;
        Some(row)
    }

    pub(super) fn insert(&mut self, row: Row) {
        self.rows
            .insert_unique(row.hash, Box::new(row), |row| row.hash);
    }

    pub(super) fn remove(&mut self, hash: u64, key: &Key) -> Option<Box<Row>> {
        let entry = self.rows.find_entry(hash, |row| row.key == *key).ok()?;
        Some(entry.remove().0)
    }

    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut Box<Row>> {
        self.rows.iter_mut()
    }

    /// Notes that the row is to go at `at`.
    pub(super) fn schedule(&mut self, hash: u64, token: Token, at: Moment) {
        self.due.push(Reverse(Due { at, hash, token }));
    }

    /// Looks at the row whose time came first. A row that lives longer by now is queued again.
    pub(super) fn step(&mut self, now: Moment) -> Step {
        let first = self.due.peek_mut().filter(|first| first.0.at <= now);
        let Some(Reverse(due)) = first.map(PeekMut::pop) else {
            return Step::Idle;
        };
        let Ok(entry) = self.rows.find_entry(due.hash, |row| row.token == due.token) else {
            return Step::Stays;
        };
        match entry.get().ends() {
            Some(end) if end <= now => Step::Gone(entry.remove().0),
            Some(end) => {
                self.schedule(due.hash, due.token, end);
                Step::Stays
            }
            None => Step::Stays,
        }
    }
}
