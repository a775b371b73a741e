//! Reports: how messages ended, and what comes next.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::store::postgres::database::Database;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::held::Held;
use crate::store::postgres::id::Id;
use crate::store::postgres::inbox::read;
use crate::store::postgres::inbox::turns::ROOM;
use crate::store::postgres::lanes::{Answers, Job};
use crate::store::postgres::pace::Effect;
use crate::store::postgres::text::readable;
use crate::store::postgres::time;
use crate::store::queue::turn::{Behind, Ended, Onward, Report, Then, Waiting};

/// Serves reports.
pub(super) struct ReportJob(pub(super) Arc<Database>);

impl Job for ReportJob {
    type Call = Vec<Report>;
    type Answer = Vec<Onward>;

    fn weight(reports: &Vec<Report>) -> usize {
        reports.len()
    }

    fn database(&self) -> &Database {
        &self.0
    }

    async fn serve(
        &self,
        held: Held,
        calls: &[Vec<Report>],
    ) -> Result<(Answers<Self>, Effect), Fault> {
        let mut held = Some(held);
        let mut left: Vec<(usize, &Report)> = calls.iter().flatten().enumerate().collect();
        let mut answers = HashMap::with_capacity(left.len());
        while !left.is_empty() {
            let (now, later) = apart(left);
            let mut turns = self.send(held.take(), &now).await?;
            for (at, report) in now {
                answers.insert(at, answer(report, &mut turns));
            }
            left = later;
        }
        let mut at = 0..;
        let mut next = |_: &Report| {
            let answer = at.next().and_then(|at| answers.remove(&at));
            answer.unwrap_or(Onward::Lost)
        };
        let answers = calls
            .iter()
            .map(|call| Ok(call.iter().map(&mut next).collect()));
        Ok((answers.collect(), Effect::Written))
    }
}

/// What the server told about turns.
#[derive(Default)]
struct Turns {
    /// Those that are not the caller's.
    lost: HashSet<(Id, i64)>,
    /// The next messages of the others.
    next: HashMap<(Id, i64), Vec<Waiting>>,
}

impl ReportJob {
    async fn send(&self, held: Option<Held>, reports: &[(usize, &Report)]) -> Result<Turns, Fault> {
        let columns = Columns::of(reports);
        let statement = &self.0.statements.report;
        let rows = self.0.query(held, statement, &columns.parameters()).await?;
        Turns::of(&rows)
    }
}

impl Turns {
    fn of(rows: &[Row]) -> Result<Self, Fault> {
        let mut turns = Self::default();
        for row in rows {
            let line = row.try_get(0).map_err(Fault::corrupt)?;
            let token = row.try_get(1).map_err(Fault::corrupt)?;
            match read::message(row, 2)? {
                Some(message) => turns.next.entry((line, token)).or_default().push(message),
                None => drop(turns.lost.insert((line, token))),
            }
        }
        Ok(turns)
    }
}

/// What follows the only report of a statement.
pub(crate) fn onward(report: &Report, rows: &[Row]) -> Result<Onward, Fault> {
    Ok(answer(report, &mut Turns::of(rows)?))
}

fn name(report: &Report) -> (Id, i64) {
    let hold = report.hold;
    (Id::of_line(hold.line), hold.token.number())
}

/// Whether the line waits for the message's next attempt.
fn waits(report: &Report) -> bool {
    matches!(
        report.ended,
        Some((
            _,
            Ended::Later {
                behind: Behind::Wait,
                ..
            }
        ))
    )
}

/// Those that one statement can carry, sorted by line, and those that come after: what follows a
/// report which may end its turn.
#[expect(clippy::type_complexity, reason = "two lists of the same kind")]
fn apart(reports: Vec<(usize, &Report)>) -> (Vec<(usize, &Report)>, Vec<(usize, &Report)>) {
    let mut closed = HashSet::new();
    let is_open = |(_, report): &(usize, &Report)| {
        let name = name(report);
        let open = !closed.contains(&name);
        if report.then != Then::GoOn || waits(report) {
            closed.insert(name);
        }
        open
    };
    let (mut now, later): (Vec<_>, Vec<_>) = reports.into_iter().partition(is_open);
    now.sort_by_key(|(_, report)| report.hold.line);
    (now, later)
}

fn answer(report: &Report, turns: &mut Turns) -> Onward {
    let name = name(report);
    if turns.lost.contains(&name) {
        return Onward::Lost;
    }
    if waits(report) {
        return Onward::Ended;
    }
    match report.then {
        Then::GoOn => Onward::Next(Vec::new()),
        Then::Read(_) | Then::GiveBack => {
            let next = turns.next.remove(&name);
            next.map_or(Onward::Ended, Onward::Next)
        }
    }
}

/// The reports as arrays.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    lines: Vec<Id>,
    tokens: Vec<i64>,
    places: Vec<Option<i64>>,
    ends: Vec<Option<&'static str>>,
    attempts: Vec<Option<i64>>,
    faults: Vec<Option<Cow<'a, str>>>,
    delays: Vec<Option<i64>>,
    passes: Vec<Option<bool>>,
    reads: Vec<Option<i64>>,
    /// Renewals go another way.
    leases: Option<Vec<i64>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn of(reports: &[(usize, &'a Report)]) -> Self {
        let mut columns = Self::default();
        for (_, report) in reports {
            columns.push(report);
        }
        columns
    }

    /// In the order of `idempotency_report`.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.lines,
            &self.tokens,
            &self.leases,
            &self.places,
            &self.ends,
            &self.attempts,
            &self.faults,
            &self.delays,
            &self.passes,
            &self.reads,
            &ROOM,
        ]
    }

    fn push(&mut self, report: &'a Report) {
        let (line, token) = name(report);
        self.lines.push(line);
        self.tokens.push(token);
        let place = report.ended.as_ref().map(|(place, _)| place.number());
        self.places.push(place);
        self.push_end(report.ended.as_ref().map(|(_, ended)| ended));
        self.reads.push(match report.then {
            Then::GoOn => None,
            Then::Read(most) => Some(i64::try_from(most).unwrap_or(i64::MAX)),
            Then::GiveBack => Some(0),
        });
    }

    fn push_end(&mut self, ended: Option<&'a Ended>) {
        let (end, attempt, fault, delay, pass) = match ended {
            None => (None, None, None, None, None),
            Some(Ended::Done) => (Some("done"), None, None, None, None),
            Some(Ended::Kept) => (Some("kept"), None, None, None, None),
            Some(Ended::Later {
                after,
                attempt,
                fault,
                behind,
            }) => {
                let pass = *behind == Behind::Pass;
                let delay = time::to_server(*after);
                let (attempt, fault) = (Some(*attempt), Some(fault));
                (Some("later"), attempt, fault, Some(delay), Some(pass))
            }
            Some(Ended::Dead { attempt, fault }) => {
                (Some("dead"), Some(*attempt), Some(fault), None, None)
            }
        };
        self.ends.push(end);
        self.attempts.push(attempt.map(i64::from));
        self.faults.push(fault.map(|fault| readable(fault)));
        self.delays.push(delay);
        self.passes.push(pass);
    }
}
