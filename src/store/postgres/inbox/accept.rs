//! Acceptance: what is sent, and whose answer is whose.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::key::{Conversation, Key};
use crate::record::Keep;
use crate::store::lease::Token;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::text::readable;
use crate::store::postgres::time;
use crate::store::queue::arrival::{Accepted, Arrival, Place, Stage};

/// One call's messages, or what is left of them to be accepted again.
pub(crate) struct AcceptCall {
    pub(super) arrivals: Vec<Coming>,
    pub(super) lease: Option<Duration>,
}

impl AcceptCall {
    /// Messages whose lines are given to nobody.
    pub(crate) fn of(arrivals: &[Arrival]) -> Self {
        Self {
            arrivals: arrivals.iter().map(Coming::of).collect(),
            lease: None,
        }
    }

    /// Whether the line of its first message is of the second half of all lines.
    pub(super) fn is_of_second_half(&self) -> bool {
        let first = self.arrivals.first();
        first.is_some_and(|coming| coming.line.spread() >= 128)
    }
}

/// A message that is to be accepted.
#[derive(Clone)]
pub(crate) struct Coming {
    id: Id,
    line: Id,
    arrival: Arrival,
}

impl Coming {
    pub(super) fn of(arrival: &Arrival) -> Self {
        Self {
            id: Id::of_key(&arrival.key),
            line: Id::of_line(arrival.line()),
            arrival: arrival.clone(),
        }
    }
}

/// Serves acceptances. The answer for a message is `None` if it is to be accepted again.
pub(super) struct AcceptJob(pub(super) Arc<Database>);

/// So many bytes take as much of a statement's room as one more row.
const BYTES_PER_ROW: usize = 16 * 1024;

impl Job for AcceptJob {
    type Call = AcceptCall;
    type Answer = Vec<Option<Accepted>>;

    fn weight(call: &AcceptCall) -> usize {
        let of_one = |coming: &Coming| 1 + coming.arrival.raw.len() / BYTES_PER_ROW;
        call.arrivals.iter().map(of_one).sum()
    }

    fn database(&self) -> &Database {
        &self.0
    }

    async fn serve(
        &self,
        held: Held,
        calls: &[AcceptCall],
    ) -> Result<(Answers<Self>, Effect), Fault> {
        let columns = Columns::of(calls);
        let rows = self
            .0
            .query(Some(held), &self.0.statements.accept, &columns.parameters())
            .await?;
        let mut told = Told::of(rows.first(), &columns)?;
        let effect = if told.new.is_empty() {
            Effect::Read
        } else {
            Effect::Written
        };
        let answers = calls.iter().map(|call| Ok(told.answer(call))).collect();
        Ok((answers, effect))
    }
}

/// What the server told. What was given out is taken out: each once.
#[derive(Default)]
struct Told {
    new: HashMap<Id, Place>,
    turns: HashMap<Id, Token>,
    known: HashMap<Id, Stage>,
}

impl Told {
    fn of(row: Option<&Row>, asked: &Columns<'_>) -> Result<Self, Fault> {
        let Some(row) = row else {
            return Ok(Self::default());
        };
        let base: Option<i64> = row.try_get(0).map_err(Fault::corrupt)?;
        let fresh: Option<Vec<Id>> = row.try_get(1).map_err(Fault::corrupt)?;
        let fresh: Option<HashSet<Id>> = fresh.map(|fresh| fresh.into_iter().collect());
        let is_new = |id: &Id| fresh.as_ref().is_none_or(|fresh| fresh.contains(id));
        let places = base.into_iter().flat_map(|base| base + 1..);
        let new = asked.keys.iter().copied().zip(places);
        let new = new.filter(|(id, _)| is_new(id));
        let begun: Option<Vec<Id>> = row.try_get(2).map_err(Fault::corrupt)?;
        let tokens: Option<Vec<i64>> = row.try_get(3).map_err(Fault::corrupt)?;
        let turns = both(begun, tokens);
        let known: Option<Vec<Id>> = row.try_get(4).map_err(Fault::corrupt)?;
        let stages: Option<Vec<Option<&str>>> = row.try_get(5).map_err(Fault::corrupt)?;
        let mut told = Self {
            new: new.map(|(id, place)| (id, Place::new(place))).collect(),
            turns: turns.map(|(id, token)| (id, Token::new(token))).collect(),
            known: HashMap::new(),
        };
        for (id, stage) in both(known, stages) {
            if let Some(stage) = stage {
                told.known.insert(id, named(stage)?);
            }
        }
        Ok(told)
    }

    /// Of several copies in one statement the first is new, and the others repeat it; of several
    /// new messages of a line the first has its turn.
    fn answer(&mut self, call: &AcceptCall) -> Vec<Option<Accepted>> {
        let answer = |coming: &Coming| {
            if let Some(place) = self.new.remove(&coming.id) {
                self.known.insert(coming.id, Stage::Waiting);
                let turn = self.turns.remove(&coming.line);
                return Some(Accepted::New { place, turn });
            }
            let stage = self.known.get(&coming.id);
            stage.map(|stage| Accepted::Repeat(*stage))
        };
        call.arrivals.iter().map(answer).collect()
    }
}

/// What belongs together in two columns.
fn both<A, B>(first: Option<Vec<A>>, second: Option<Vec<B>>) -> impl Iterator<Item = (A, B)> {
    first
        .into_iter()
        .flatten()
        .zip(second.into_iter().flatten())
}

fn named(stage: &str) -> Result<Stage, Fault> {
    match stage {
        "waiting" => Ok(Stage::Waiting),
        "done" => Ok(Stage::Done),
        "dead" => Ok(Stage::Dead),
        other => Err(Fault::corrupt(format!("there is no stage {other:?}"))),
    }
}

/// The messages as arrays, in the order of the calls, each key once. Columns that hold nothing are
/// not sent.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    keys: Vec<Id>,
    lines: Vec<Id>,
    keeps: Vec<i64>,
    lively: Vec<bool>,
    leases: Vec<Option<i64>>,
    channels: Vec<Cow<'a, str>>,
    scopes: Vec<Cow<'a, str>>,
    ids: Vec<Cow<'a, str>>,
    conversations: Option<Vec<Option<Cow<'a, str>>>>,
    raws: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(calls: &'a [AcceptCall]) -> Self {
        let count = calls.iter().map(|call| call.arrivals.len()).sum();
        let mut seen = HashSet::with_capacity(count);
        let mut columns = Self::default();
        let all = || {
            let of_call = |call: &'a AcceptCall| call.arrivals.iter().map(move |c| (c, call.lease));
            calls.iter().flat_map(of_call)
        };
        let spoken = all().any(|(coming, _)| coming.arrival.conversation.is_some());
        columns.conversations = spoken.then(|| Vec::with_capacity(count));
        for (coming, lease) in all() {
            if seen.insert(coming.id) {
                columns.push(coming, lease);
            }
        }
        columns
    }

    /// In the order of `idempotency_accept`.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 10] {
        [
            &self.keys,
            &self.lines,
            &self.keeps,
            &self.lively,
            &self.leases,
            &self.channels,
            &self.scopes,
            &self.ids,
            &self.conversations,
            &self.raws,
        ]
    }

    fn push(&mut self, coming: &'a Coming, lease: Option<Duration>) {
        let Arrival {
            key,
            conversation,
            keep,
            raw,
        } = &coming.arrival;
        let (time, lively) = kept(*keep, conversation.as_ref());
        self.keys.push(coming.id);
        self.lines.push(coming.line);
        self.keeps.push(time::to_server(time));
        self.lively.push(lively);
        self.leases.push(lease.map(time::to_server));
        self.push_texts(key, conversation.as_ref());
        self.raws.push(raw);
    }

    fn push_texts(&mut self, key: &'a Key, conversation: Option<&'a Conversation>) {
        self.channels.push(readable(key.channel()));
        self.scopes.push(readable(key.scope()));
        self.ids.push(readable(key.id()));
        if let Some(conversations) = &mut self.conversations {
            conversations.push(conversation.map(|c| readable(c.id())));
        }
    }
}

/// How long a key is kept, and whether it lives with its conversation.
fn kept(keep: Keep, conversation: Option<&Conversation>) -> (Duration, bool) {
    match keep {
        Keep::For(time) => (time, false),
        Keep::Conversation { idle } => (idle, conversation.is_some()),
    }
}
