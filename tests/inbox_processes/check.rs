//! What the journal must say.

use std::collections::{HashMap, HashSet};

use crate::journal::Event;

/// What a journal says about the handling of all messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Messages that no handler ended.
    pub(crate) lost: Vec<String>,
    /// Messages that began while another of their conversation was being handled.
    pub(crate) beside: Vec<String>,
    /// Messages that were handled before an earlier one.
    pub(crate) early: Vec<String>,
    /// Messages that were handled again although no process died and no handler was cut.
    pub(crate) again: Vec<String>,
}

/// Judges a journal of messages whose ids are those of [`crate::senders::id`].
pub(crate) fn judge(events: &[Event], expected: impl IntoIterator<Item = String>) -> Findings {
    let mut findings = Findings::default();
    let mut running: HashMap<String, (String, u32)> = HashMap::new();
    let mut latest: HashMap<String, String> = HashMap::new();
    let mut ended: HashSet<String> = HashSet::new();
    // Who ended a message, and whether it may come again: its process died before it was recorded.
    let mut enders: HashMap<String, u32> = HashMap::new();
    let mut dead: HashSet<u32> = HashSet::new();
    for event in events {
        match event {
            Event::Began(id, process, _) => {
                let chat = chat_of(id);
                if running
                    .insert(chat.clone(), (id.clone(), *process))
                    .is_some()
                {
                    findings.beside.push(id.clone());
                }
                if enders.get(id).is_some_and(|ender| !dead.contains(ender)) {
                    findings.again.push(id.clone());
                }
                let is_repeat = ended.contains(id);
                if !is_repeat && latest.get(&chat).is_some_and(|latest| latest > id) {
                    findings.early.push(id.clone());
                }
                let last = latest.entry(chat).or_default();
                *last = (*last).clone().max(id.clone());
            }
            Event::Ended(id, process) => {
                running.remove(&chat_of(id));
                ended.insert(id.clone());
                enders.insert(id.clone(), *process);
            }
            Event::Cut(id, _) => {
                running.remove(&chat_of(id));
            }
            Event::Killed(process) => {
                running.retain(|_, (_, runner)| runner != process);
                dead.insert(*process);
            }
        }
    }
    findings.lost = expected
        .into_iter()
        .filter(|id| !ended.contains(id))
        .collect();
    findings
}

fn chat_of(id: &str) -> String {
    id.rsplit_once('-').unwrap().0.to_owned()
}

#[test]
fn the_judge_finds_what_is_wrong() {
    let began = |id: &str, process| Event::Began(id.to_owned(), process, 1);
    let ended = |id: &str, process| Event::Ended(id.to_owned(), process);
    let good = [
        began("a-1", 1),
        began("b-1", 2),
        ended("a-1", 1),
        Event::Killed(2),
        began("b-1", 1),
        ended("b-1", 1),
        Event::Killed(1),
        began("b-1", 3),
        ended("b-1", 3),
    ];
    let all = || ["a-1".to_owned(), "b-1".to_owned()];
    assert_eq!(judge(&good, all()), Findings::default());
    assert_eq!(judge(&good[..3], all()).lost, ["b-1"]);
    let beside = [began("a-1", 1), began("a-2", 2)];
    assert_eq!(judge(&beside, []).beside, ["a-2"]);
    let early = [began("a-2", 1), ended("a-2", 1), began("a-1", 1)];
    assert_eq!(judge(&early, []).early, ["a-1"]);
    let again = [began("a-1", 1), ended("a-1", 1), began("a-1", 2)];
    assert_eq!(judge(&again, []).again, ["a-1"]);
}
