//! How long an inbox's keys stay, and forgetting its conversations.

use std::time::Duration;

use bytes::Bytes;

use crate::key::{Conversation, Key};
use crate::store::memory::inbox::{Rows, number};
use crate::store::memory::line::LineRow;
use crate::store::memory::moment::Moment;
use crate::store::queue::arrival::{Line, Stage};

impl Rows {
    /// The messages of a conversation go, waiting and dead ones; their keys stay.
    pub(super) fn forget(&mut self, conversation: &Conversation, now: Moment) -> u64 {
        let line = Line::of_conversation(conversation);
        let mut gone = Vec::new();
        if self.lines.contains_key(&line) {
            gone = self.change(line, now, LineRow::clear);
        }
        let dead = self.dead.extract_if(.., |_, dead| dead.line == line);
        gone.extend(dead.map(|(_, dead)| dead.message));
        for message in &gone {
            self.leave(message, Stage::Done);
        }
        let of_line = self.seen.values_mut().filter(|seen| seen.line == line);
        let kept: Vec<Bytes> = of_line.filter_map(|seen| seen.raw.take()).collect();
        self.bytes -= kept.iter().map(Bytes::len).sum::<usize>();
        number(gone.len() + kept.len())
    }

    pub(super) fn close(&mut self, conversation: &Conversation, now: Moment) {
        if let Some(life) = self.lives.get_mut(&Line::of_conversation(conversation)) {
            life.heard = now;
        }
    }

    /// Removes up to `limit` keys of done messages whose retention has ended.
    pub(super) fn sweep(&mut self, limit: usize, now: Moment) -> u64 {
        let over = self.ends.iter().take_while(|(at, _)| *at <= now);
        let over: Vec<Key> = over.take(limit).map(|(_, key)| key.clone()).collect();
        let mut swept = 0;
        for key in over {
            if self.has_ended(&key, now) {
                self.remove_key(&key);
                swept += 1;
            } else {
                self.put_off_end(&key, now);
            }
        }
        swept
    }

    /// Looks at the key again when its conversation may be over by what is known now.
    fn put_off_end(&mut self, key: &Key, now: Moment) {
        let Some(seen) = self.seen.get_mut(key) else {
            return;
        };
        self.ends.remove(&(seen.ends, key.clone()));
        let heard = self.lives.get(&seen.line).map_or(now, |life| life.heard);
        let by_life = seen.idle.map_or(now, |idle| heard.plus(idle));
        seen.ends = by_life.max(now.plus(LOOK_AGAIN));
        self.ends.insert((seen.ends, key.clone()));
    }

    pub(super) fn has_ended(&self, key: &Key, now: Moment) -> bool {
        let Some(seen) = self.seen.get(key) else {
            return true;
        };
        let heard = self.lives.get(&seen.line).map(|life| life.heard);
        let life = heard.zip(seen.idle).map(|(heard, idle)| heard.plus(idle));
        seen.stage == Stage::Done && seen.ends <= now && life.is_none_or(|end| end <= now)
    }

    pub(super) fn remove_key(&mut self, key: &Key) {
        let Some(seen) = self.seen.remove(key) else {
            return;
        };
        self.bytes -= seen.raw.map_or(0, |raw| raw.len());
        self.ends.remove(&(seen.ends, key.clone()));
        if let Some(life) = self.lives.get_mut(&seen.line) {
            life.keys -= 1;
            if life.keys == 0 {
                self.lives.remove(&seen.line);
            }
        }
    }
}

/// When a key is looked at again whose message is not done yet.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
