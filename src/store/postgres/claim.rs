//! Claims: what is sent, and whose answer is whose.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::store::contract::{Verdict, Wanted};
use crate::store::postgres::database::{Database, Parameters};
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::stand::{Round, Stand};
use crate::store::postgres::text::readable;
use crate::store::postgres::time;

/// One attempt's claim, or what is left of it to be asked again.
pub(super) struct ClaimCall {
    pub(super) nonce: Id,
    pub(super) lease: Duration,
    pub(super) unknown_for: Option<Duration>,
    pub(super) wanted: Vec<(Id, Wanted)>,
    pub(super) round: Round,
}

/// Serves claims. The answer for a key is `None` if it is to be claimed again.
pub(super) struct ClaimJob {
    database: Arc<Database>,
    /// How many of the last keys had a row, in 256ths, smoothed.
    known: AtomicUsize,
}

impl Job for ClaimJob {
    type Call = ClaimCall;
    type Answer = Vec<Option<Verdict>>;

    fn weight(call: &ClaimCall) -> usize {
        call.wanted.len()
    }

    fn database(&self) -> &Database {
        &self.database
    }

    async fn serve(
        &self,
        held: Held,
        calls: &[ClaimCall],
    ) -> Result<(Answers<Self>, Effect), Fault> {
        let asked = Asked::of(calls);
        let mut stands = match asked.keys.as_slice() {
            [only] => Box::pin(self.claim_one(held, only)).await?,
            _ => Box::pin(self.claim(held, &asked)).await?,
        };
        let taken = self.take(&asked, &mut stands).await?;
        let is_made = |(asked, stand): &&(Id, Stand)| stand.is_run_by(*asked);
        let made = stands.values().filter(is_made).count();
        self.learn(asked.keys.len(), stands.len() - made);
        let effect = if taken == Effect::Written || made > 0 {
            Effect::Written
        } else {
            Effect::Read
        };
        let answers = calls.iter().map(|call| answer(call, &stands)).collect();
        Ok((answers, effect))
    }
}

/// How each key stands, and under which nonce it was asked for.
type Stands = HashMap<Id, (Id, Stand)>;

impl ClaimJob {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            known: AtomicUsize::new(0),
        }
    }

    /// Whether the next keys may well have rows: most of the last had.
    fn expects_rows(&self) -> bool {
        self.known.load(Ordering::Relaxed) > 128
    }

    fn learn(&self, keys: usize, known: usize) {
        let share = known * 256 / keys.max(1);
        let before = self.known.load(Ordering::Relaxed);
        let after = (before * 7 + share) / 8;
        self.known.store(after, Ordering::Relaxed);
    }

    /// One key. What is more likely is tried first, which only saves work.
    async fn claim_one(&self, held: Held, key: &Key<'_>) -> Result<Stands, Fault> {
        let wanted = key.wanted;
        let conversation = wanted.conversation.as_ref();
        let lease = time::to_server(key.lease);
        let statement = &self.database.statements.begin;
        let parameters: &Parameters<'_> = &[
            &key.id,
            &key.nonce,
            &if self.expects_rows() { -lease } else { lease },
            &readable(wanted.key.channel()),
            &readable(wanted.key.scope()),
            &readable(wanted.key.id()),
            &wanted.fingerprint.as_ref().map(|f| &f.as_bytes()[..]),
            &conversation.map(Id::of_conversation),
            &conversation.map(|c| readable(c.id())),
        ];
        let rows = self
            .database
            .query(Some(held), statement, parameters)
            .await?;
        let mut stands = Stands::new();
        for row in &rows {
            if row
                .try_get::<_, Option<Id>>(0)
                .map_err(Fault::corrupt)?
                .is_some()
            {
                let (id, stand) = Stand::of(row)?;
                stands.insert(id, (key.nonce, stand));
            }
        }
        Ok(stands)
    }

    async fn claim(&self, held: Held, asked: &Asked<'_>) -> Result<Stands, Fault> {
        let columns = Columns::of(&asked.keys);
        let total = i32::try_from(asked.keys.len()).unwrap_or(i32::MAX);
        let rows = self
            .database
            .query(
                Some(held),
                &self.database.statements.claim,
                &[
                    &columns.keys,
                    &columns.nonces,
                    &columns.leases,
                    &columns.channels,
                    &columns.scopes,
                    &columns.ids,
                    &columns.fingerprints,
                    &columns.conversation_keys,
                    &columns.conversations,
                    &columns.conversations.is_some(),
                    &self.expects_rows(),
                    &total,
                ],
            )
            .await?;
        let mut stands = Stands::with_capacity(rows.len());
        for row in &rows {
            let (key, stand) = Stand::of(row)?;
            if let Some(asked) = asked.find(key) {
                stands.insert(key, (asked.nonce, stand));
            }
        }
        Ok(stands)
    }

    /// Takes over the rows that are free. There are none, most of the time.
    async fn take(&self, asked: &Asked<'_>, stands: &mut Stands) -> Result<Effect, Fault> {
        let is_free = |key: &Key<'_>| {
            let stand = stands.get(&key.id).map(|(_, stand)| stand);
            stand.is_some_and(|stand| stand.is_free_for(key.nonce, key.unknown_for))
        };
        let free: Vec<Key<'_>> = asked.keys.iter().copied().filter(is_free).collect();
        if free.is_empty() {
            return Ok(Effect::Read);
        }
        let mut columns = Columns::of(&free);
        let lapsed_for = |key: &Key<'_>| time::to_server(key.unknown_for.unwrap_or_default());
        columns.leases.extend(free.iter().map(lapsed_for));
        let rows = self
            .database
            .query(
                None,
                &self.database.statements.take,
                &[
                    &columns.keys,
                    &columns.nonces,
                    &columns.leases,
                    &columns.channels,
                    &columns.scopes,
                    &columns.fingerprints,
                    &columns.conversation_keys,
                    &columns.conversations,
                ],
            )
            .await?;
        for row in &rows {
            let key = row.try_get(0).map_err(Fault::corrupt)?;
            if let (Some(asked), Some((_, stand))) = (asked.find(key), stands.get_mut(&key)) {
                stand.taken(row, asked.nonce, (asked.wanted, asked.lease))?;
            }
        }
        Ok(Effect::Written)
    }
}

fn answer(call: &ClaimCall, stands: &Stands) -> Result<Vec<Option<Verdict>>, Error> {
    let verdict = |(id, wanted): &(Id, Wanted)| match stands.get(id) {
        Some((asked, stand)) => {
            stand.verdict(wanted, (call.nonce, *asked), (call.unknown_for, call.round))
        }
        None => Ok(None),
    };
    call.wanted.iter().map(verdict).collect()
}

/// What a statement asks for: each key once, in the order in which rows are locked.
struct Asked<'a> {
    keys: Vec<Key<'a>>,
}

#[derive(Clone, Copy)]
struct Key<'a> {
    id: Id,
    nonce: Id,
    lease: Duration,
    unknown_for: Option<Duration>,
    wanted: &'a Wanted,
}

impl<'a> Asked<'a> {
    fn of(calls: &'a [ClaimCall]) -> Self {
        let of_call = |call: &'a ClaimCall| {
            call.wanted.iter().map(|(id, wanted)| Key {
                id: *id,
                nonce: call.nonce,
                lease: call.lease,
                unknown_for: call.unknown_for,
                wanted,
            })
        };
        let mut keys: Vec<Key<'a>> = calls.iter().flat_map(of_call).collect();
        keys.sort_by_key(|key| key.id);
        keys.dedup_by_key(|key| key.id);
        Self { keys }
    }

    fn find(&self, id: Id) -> Option<Key<'a>> {
        let at = self.keys.binary_search_by_key(&id, |key| key.id).ok()?;
        self.keys.get(at).copied()
    }
}

/// The keys as arrays. Columns that hold nothing are not sent.
struct Columns<'a> {
    keys: Vec<Id>,
    nonces: Vec<Id>,
    leases: Vec<i64>,
    channels: Vec<Cow<'a, str>>,
    scopes: Vec<Cow<'a, str>>,
    ids: Vec<Cow<'a, str>>,
    fingerprints: Option<Vec<Option<&'a [u8]>>>,
    conversation_keys: Option<Vec<Option<Id>>>,
    conversations: Option<Vec<Option<Cow<'a, str>>>>,
}

impl<'a> Columns<'a> {
    fn of(keys: &[Key<'a>]) -> Self {
        let compared = keys.iter().any(|key| key.wanted.fingerprint.is_some());
        let spoken = keys.iter().any(|key| key.wanted.conversation.is_some());
        let print = |key: &Key<'a>| key.wanted.fingerprint.as_ref().map(|f| &f.as_bytes()[..]);
        let conversation = |key: &Key<'a>| key.wanted.conversation.as_ref();
        let named = |key: &Key<'a>| conversation(key).map(|c| readable(c.id()));
        let id = |key: &Key<'a>| conversation(key).map(Id::of_conversation);
        let text = |part: fn(&crate::key::Key) -> &str| {
            let part = move |key: &Key<'a>| readable(part(&key.wanted.key));
            keys.iter().map(part).collect()
        };
        Self {
            keys: keys.iter().map(|key| key.id).collect(),
            nonces: keys.iter().map(|key| key.nonce).collect(),
            leases: keys.iter().map(|key| time::to_server(key.lease)).collect(),
            channels: text(crate::key::Key::channel),
            scopes: text(crate::key::Key::scope),
            ids: text(crate::key::Key::id),
            fingerprints: compared.then(|| keys.iter().map(print).collect()),
            conversation_keys: spoken.then(|| keys.iter().map(id).collect()),
            conversations: spoken.then(|| keys.iter().map(named).collect()),
        }
    }
}
