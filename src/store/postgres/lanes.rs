//! Calls that wait while a statement is in flight go together in the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::error::Error;
use crate::store::postgres::database::Database;
use crate::store::postgres::fault::{Cure, Fault, shared};
use crate::store::postgres::held::Held;
use crate::store::postgres::pace::{Crowd, Effect, Pace};

/// What calls of one kind have in common: one statement serves many of them.
pub(super) trait Job: Send + Sync + 'static {
    type Call: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// How much of a statement's room a call takes; about its number of rows.
    fn weight(call: &Self::Call) -> usize;

    /// Where statements are sent.
    fn database(&self) -> &Database;

    /// Serves all calls by one statement: all are applied, or none. The answers come in the order
    /// of the calls; a call's own error is no failure of the statement.
    fn serve(
        &self,
        held: Held,
        calls: &[Self::Call],
    ) -> impl Future<Output = Result<(Answers<Self>, Effect), Fault>> + Send;
}

pub(super) type Answers<J> = Vec<Answer<J>>;
pub(super) type Answer<J> = Result<<J as Job>::Answer, Error>;

/// The way of calls of one kind to the server.
///
/// A call that finds nothing in flight is sent at once, by its caller itself: no other task, no
/// timer. Calls that come meanwhile wait in line, and when a statement has ended they go together
/// in the next one, which a task of its own sends. That task ends when nobody waits.
///
/// Calls come in crowds: those that one statement answered make their next call together. So the
/// first of a crowd lets other tasks run before it is sent, for as long as calls come of it, and
/// goes with them: sent alone, it would keep all others waiting for a statement of one.
pub(super) struct Lanes<J: Job> {
    shared: Arc<Shared<J>>,
}

struct Shared<J: Job> {
    job: J,
    limit: Duration,
    state: Mutex<State<J>>,
}

struct State<J: Job> {
    line: VecDeque<Waiting<J>>,
    running: Vec<Instant>,
    pace: Pace,
    crowd: Crowd,
}

struct Waiting<J: Job> {
    call: J::Call,
    caller: oneshot::Sender<Answer<J>>,
}

/// How much one statement carries at most.
const ROOM: usize = 256;

/// How often the first of a crowd lets other tasks run, at most: each time all that are ready, or
/// for some microseconds if none is.
const YIELDS: usize = 8;

/// How a call enters.
enum Entry<J: Job> {
    Alone(J::Call, Turn<J>),
    /// As alone, but others may come at this very moment.
    Crowd(J::Call, Turn<J>),
    InLine(oneshot::Receiver<Answer<J>>),
}

impl<J: Job> Lanes<J> {
    pub(super) fn new(job: J, most: usize, limit: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                job,
                limit,
                state: Mutex::new(State {
                    line: VecDeque::new(),
                    running: Vec::new(),
                    pace: Pace::new(most),
                    crowd: Crowd::default(),
                }),
            }),
        }
    }

    /// How many calls a statement served lately.
    pub(super) fn crowd(&self) -> usize {
        self.shared.state().crowd.size()
    }

    /// Sends a call and waits for its answer, at most for the limit.
    ///
    /// Dropped in line, the call is not sent. Dropped while it is sent alone, its connection is
    /// closed. Dropped while it is sent together with others, it is served with them.
    pub(super) async fn ask(&self, call: J::Call) -> Answer<J> {
        let shared = &self.shared;
        let entry = match shared.enter(call) {
            Entry::Crowd(call, turn) => {
                shared.let_others_come().await;
                turn.with_others(call)
            }
            entry @ (Entry::Alone(..) | Entry::InLine(_)) => entry,
        };
        match entry {
            Entry::Alone(call, turn) | Entry::Crowd(call, turn) => {
                let answer = shared.within_limit(shared.serve_one(&call)).await;
                drop(turn);
                answer?
            }
            Entry::InLine(answer) => match timeout(shared.limit, answer).await {
                Ok(answer) => answer.unwrap_or_else(|_| Err(stopped())),
                Err(_) => Err(overdue()),
            },
        }
    }
}

impl<J: Job> Shared<J> {
    fn enter(self: &Arc<Self>, call: J::Call) -> Entry<J> {
        let mut state = self.state();
        let may_begin = state.pace.allows_beside(state.running.iter().copied());
        if may_begin && state.line.is_empty() {
            let crowd = state.running.is_empty() && state.crowd.comes();
            let turn = self.begin(&mut state);
            return if crowd {
                Entry::Crowd(call, turn)
            } else {
                Entry::Alone(call, turn)
            };
        }
        let (caller, answer) = oneshot::channel();
        state.line.push_back(Waiting { call, caller });
        if may_begin {
            let turn = self.begin(&mut state);
            drop(state);
            turn.hand_over();
        }
        Entry::InLine(answer)
    }

    /// Lets other tasks run while calls come of it.
    async fn let_others_come(&self) {
        let mut came = 0;
        for _ in 0..YIELDS {
            yield_now().await;
            let waiting = self.state().line.len();
            if waiting > 0 && waiting == came {
                return;
            }
            came = waiting;
        }
    }

    fn begin(self: &Arc<Self>, state: &mut State<J>) -> Turn<J> {
        let began = Instant::now();
        state.running.push(began);
        Turn {
            shared: Arc::clone(self),
            began,
            holder: Holder::Caller,
        }
    }

    /// Serves one call, on a connection of its own choice.
    async fn serve_one(&self, call: &J::Call) -> Answer<J> {
        let served = async {
            let held = self.job.database().connection().await?;
            self.paced(held, std::slice::from_ref(call)).await
        };
        match served.await {
            Ok(mut answers) => answers.pop().unwrap_or_else(|| Err(stopped())),
            Err(fault) => Err(fault.error),
        }
    }

    /// Serves those that wait, again and again until nobody waits.
    ///
    /// The connection comes first: whoever gave up while it was waited for is not served.
    async fn serve_line(mut turn: Turn<J>) {
        let shared = Arc::clone(&turn.shared);
        while turn.is_wanted() {
            let Ok(held) = shared
                .within_limit(shared.job.database().connection())
                .await
            else {
                continue;
            };
            let Gathered { calls, callers } = turn.gather();
            let served = shared.within_limit(shared.serve(held, &calls)).await;
            match served {
                Ok(answers) => tell(callers, answers),
                Err(_) => tell(callers, std::iter::repeat_with(|| Err(overdue()))),
            }
        }
    }

    /// Serves some calls. If together they fail where one of them may be the cause, each by itself.
    async fn serve(&self, held: Result<Held, Fault>, calls: &[J::Call]) -> Answers<J> {
        let served = match held {
            Ok(held) if calls.is_empty() => {
                held.give_back();
                Ok(Vec::new())
            }
            Ok(held) => self.paced(held, calls).await,
            Err(fault) => Err(fault),
        };
        let fault = match served {
            Ok(answers) => return answers,
            Err(fault) => fault,
        };
        match (fault.cure, calls) {
            (Cure::Apart | Cure::Repeat, [_, _, ..]) => {
                let mut answers = Vec::with_capacity(calls.len());
                for call in calls {
                    answers.push(self.serve_one(call).await);
                }
                answers
            }
            (Cure::Apart | Cure::Repeat, [] | [_])
            | (Cure::Reconnect | Cure::Unprepared | Cure::None, _) => {
                shared(fault.error, calls.len()).map(Err).collect()
            }
        }
    }

    /// Sends one statement, and learns from it.
    async fn paced(&self, held: Held, calls: &[J::Call]) -> Result<Answers<J>, Fault> {
        let began = Instant::now();
        let (answers, effect) = self.job.serve(held, calls).await?;
        let rows = calls.iter().map(J::weight).sum();
        let mut state = self.state();
        state.pace.note(rows, began.elapsed(), effect);
        state.crowd.note(calls.len());
        Ok(answers)
    }

    async fn within_limit<T>(&self, served: impl Future<Output = T> + Send) -> Result<T, Error> {
        let began = Instant::now();
        timeout(self.limit, served).await.map_err(|_| {
            self.job.database().distrust(began);
            overdue()
        })
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the statements in flight. However its holder ends, the next of those in line go on.
struct Turn<J: Job> {
    shared: Arc<Shared<J>>,
    began: Instant,
    holder: Holder,
}

#[derive(PartialEq, Eq)]
enum Holder {
    /// A caller that sends its own call.
    Caller,
    /// The task that serves those in line.
    Task,
    /// Nobody: it is out of the list of those in flight.
    Nobody,
}

/// The calls of one statement, and who waits for them.
struct Gathered<J: Job> {
    calls: Vec<J::Call>,
    callers: Vec<oneshot::Sender<Answer<J>>>,
}

impl<J: Job> Turn<J> {
    /// Puts the caller's own call before those that came meanwhile, if any came.
    fn with_others(self, call: J::Call) -> Entry<J> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if state.line.is_empty() {
            return Entry::Alone(call, self);
        }
        let (caller, answer) = oneshot::channel();
        state.line.push_front(Waiting { call, caller });
        drop(state);
        self.hand_over();
        Entry::InLine(answer)
    }

    /// A task serves those in line from now on, and ends when nobody waits.
    fn hand_over(mut self) {
        self.holder = Holder::Task;
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(Shared::serve_line(self)));
        }
    }

    /// Whether somebody waits. If not, the turn is over.
    fn is_wanted(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        // A caller that went away or ran out of time has been answered otherwise.
        state.line.retain(|waiting| !waiting.caller.is_closed());
        let wanted = !state.line.is_empty();
        if !wanted {
            state.leave(self.began);
            self.holder = Holder::Nobody;
        }
        wanted
    }

    /// Takes those in line, as many as there is room for. The statement begins.
    fn gather(&mut self) -> Gathered<J> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        let mut gathered = Gathered {
            calls: Vec::new(),
            callers: Vec::new(),
        };
        let mut weight = 0;
        while weight < ROOM
            && let Some(waiting) = state.line.pop_front()
        {
            if waiting.caller.is_closed() {
                continue;
            }
            weight += J::weight(&waiting.call);
            gathered.calls.push(waiting.call);
            gathered.callers.push(waiting.caller);
        }
        state.leave(self.began);
        self.began = Instant::now();
        state.running.push(self.began);
        gathered
    }
}

impl<J: Job> State<J> {
    fn leave(&mut self, began: Instant) {
        if let Some(at) = self.running.iter().position(|at| *at == began) {
            self.running.swap_remove(at);
        }
    }
}

impl<J: Job> Drop for Turn<J> {
    fn drop(&mut self) {
        if self.holder == Holder::Nobody {
            return;
        }
        let mut state = self.shared.state();
        if self.holder == Holder::Caller && !state.line.is_empty() {
            drop(state);
            Self {
                shared: Arc::clone(&self.shared),
                began: self.began,
                holder: Holder::Task,
            }
            .hand_over();
            return;
        }
        state.leave(self.began);
        // The task was stopped with its runtime. Those in line are told if no other serves them.
        if state.running.is_empty() {
            let line = std::mem::take(&mut state.line);
            drop(state);
            drop(line);
        }
    }
}

fn tell<A>(callers: Vec<oneshot::Sender<A>>, answers: impl IntoIterator<Item = A>) {
    for (caller, answer) in callers.into_iter().zip(answers) {
        // A caller that went away needs no answer.
        drop(caller.send(answer));
    }
}

fn overdue() -> Error {
    Error::overdue("the database did not answer in time")
}

fn stopped() -> Error {
    Error::unavailable("the store was stopped")
}
