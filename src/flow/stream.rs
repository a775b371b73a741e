//! A response that takes its time: each frame goes out as it is produced, the end once the
//! record is written.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::sync::mpsc::{Sender, channel};

use crate::body::response::{Last, Piece, ResponseBody};
use crate::channel::contract::Channel;
use crate::error::BoxError;
use crate::flow::context::Context;
use crate::flow::ending::{Ended, Ending};
use crate::flow::keep::keeping;
use crate::flow::recording::{packed_body, recorded_headers};
use crate::flow::settling::Confirmed;
use crate::policy::{OnUnconfirmed, Options, Outcome};
use crate::record::{Record, Whole};
use crate::store::contract::Store;

/// So many frames may wait for a slow reader: a record must not wait for it. It does where a
/// response within `max_response` has yet more frames, of a few bytes each.
const PIECES: usize = 1 << 16;

/// A response that is not known whole yet.
pub(crate) struct Source<R> {
    status: StatusCode,
    headers: HeaderMap,
    /// `None` if only the trailers will tell.
    outcome: Option<Outcome>,
    first: Vec<Bytes>,
    body: Pin<Box<R>>,
}

/// What a source came to.
enum Flowed<R> {
    /// It ended; the last frame is held back.
    Whole(Whole, Option<Frame<Bytes>>),
    /// It is over the limit. The rest is not kept, and goes to the caller as it comes.
    TooLarge(Pin<Box<R>>),
    /// It is over the limit, and was passed on to its end, since only that tells how it ended.
    TooLargeToTheEnd(Option<Frame<Bytes>>),
    /// It broke.
    Broken(BoxError),
}

impl<R> Source<R> {
    pub(crate) fn new(
        options: &Options,
        parts: &Parts,
        outcome: Option<Outcome>,
        (first, body): (Vec<Bytes>, Pin<Box<R>>),
    ) -> Self {
        Self {
            status: parts.status,
            headers: recorded_headers(options, &parts.headers),
            outcome,
            first,
            body,
        }
    }
}

/// Begins to pass the response on in a task of its own, and gives the body that the caller reads.
pub(crate) fn begin<S, C, R>(
    context: Arc<Context<S, C>>,
    ending: Ending,
    source: Source<R>,
) -> ResponseBody<R>
where
    S: Store,
    C: Channel,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (pieces, body) = channel(PIECES);
    let detached = Arc::clone(&context.detached);
    detached.see_through(async move { pass_on(&context, ending, source, &pieces).await });
    ResponseBody::streamed(body)
}

async fn pass_on<S, C, R>(
    context: &Arc<Context<S, C>>,
    ending: Ending,
    source: Source<R>,
    pieces: &Sender<Piece<R>>,
) where
    S: Store,
    C: Channel,
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let (status, headers, outcome) = (source.status, source.headers, source.outcome);
    let limit = context.options.max_response;
    let flow = flow(
        (source.first, source.body),
        outcome.is_some(),
        limit,
        pieces,
    );
    let flow = AssertUnwindSafe(flow).catch_unwind();
    let flowed = keeping(context, || ending.holds(), flow).await;
    let at_end = |held: &Option<Frame<Bytes>>| {
        let trailers = held.as_ref().and_then(Frame::trailers_ref);
        outcome.unwrap_or_else(|| ending.ends.at_end(trailers))
    };
    let (outcome, record, held, last) = match flowed {
        Ok(Flowed::Whole(whole, held)) => {
            let record = Record::new(status, headers, packed_body(&whole));
            (at_end(&held), record, held, Last::End)
        }
        Ok(Flowed::TooLargeToTheEnd(held)) => (
            at_end(&held),
            Record::too_large(status, headers),
            held,
            Last::End,
        ),
        Ok(Flowed::TooLarge(rest)) => {
            let record = Record::too_large(status, headers);
            (at_end(&None), record, None, Last::Rest(rest))
        }
        Ok(Flowed::Broken(error)) => return break_off(context, ending, error, pieces).await,
        Err(_panic) => {
            let error = "the handler panicked while it produced the response".into();
            return break_off(context, ending, error, pieces).await;
        }
    };
    let record = Some(Arc::new(record));
    let gave_back = ending.claimed.gives_some_back();
    let confirmed = ending.settle(context, Ended { outcome, record }).await;
    let (held, last) = match outcome {
        Outcome::Release | Outcome::Unknown => (held, last),
        Outcome::Record(_) if gave_back => {
            let error = "the handler gave a message of the request back";
            (None, Last::Failed(error.into()))
        }
        Outcome::Record(_) => finish(confirmed, context.options.on_unconfirmed, (held, last)),
    };
    if let Some(frame) = held {
        send(pieces, Piece::Frame(frame)).await;
    }
    send(pieces, Piece::Last(last)).await;
}

/// The end of a response that is under way: it is whole only if the record is.
fn finish<R>(
    confirmed: Confirmed,
    on_unconfirmed: OnUnconfirmed,
    end: (Option<Frame<Bytes>>, Last<R>),
) -> (Option<Frame<Bytes>>, Last<R>) {
    match (confirmed, on_unconfirmed) {
        (Confirmed::Applied, _) | (Confirmed::Unconfirmed, OnUnconfirmed::AnswerSuccess) => end,
        (Confirmed::Superseded(_), _) => (None, Last::Failed("another run took over".into())),
        (Confirmed::RolledBack(_), _) => {
            let error = "what the handler wrote was not committed".into();
            (None, Last::Failed(error))
        }
        (Confirmed::Unconfirmed, OnUnconfirmed::Retryable) => {
            let error = "the record of this response is not confirmed".into();
            (None, Last::Failed(error))
        }
    }
}

async fn break_off<S: Store, C: Channel, R>(
    context: &Arc<Context<S, C>>,
    ending: Ending,
    error: BoxError,
    pieces: &Sender<Piece<R>>,
) {
    tracing::warn!(%error, "the handler's response broke before its end");
    let unknown = Ended::without_record(ending.ends.unknown());
    ending.settle(context, unknown).await;
    send(pieces, Piece::Last(Last::Failed(error))).await;
}

/// Passes frames on until only the end is left, which is held back: the trailers, or the last
/// frame of a source that says so.
async fn flow<R>(
    (first, mut body): (Vec<Bytes>, Pin<Box<R>>),
    outcome_known: bool,
    limit: usize,
    pieces: &Sender<Piece<R>>,
) -> Flowed<R>
where
    R: Body<Data = Bytes> + Send,
    R::Error: Into<BoxError>,
{
    let mut whole = Whole::default();
    let mut read = 0;
    for data in first {
        read += data.len();
        whole.frames.push(data.clone());
        send(pieces, Piece::Frame(Frame::data(data))).await;
    }
    loop {
        if read > limit && outcome_known {
            return Flowed::TooLarge(body);
        }
        let frame = match body.frame().await {
            None => return ended(whole, None, read > limit),
            Some(Err(error)) => return Flowed::Broken(error.into()),
            Some(Ok(frame)) => frame,
        };
        if let Some(data) = frame.data_ref() {
            read += data.len();
            if read <= limit {
                whole.frames.push(data.clone());
            } else if !outcome_known {
                whole.frames.clear();
                caught_up(pieces).await;
            }
        }
        if let Some(trailers) = frame.trailers_ref() {
            whole.trailers = Some(trailers.clone());
        }
        if frame.is_trailers() || body.is_end_stream() {
            return ended(whole, Some(frame), read > limit);
        }
        send(pieces, Piece::Frame(frame)).await;
    }
}

fn ended<R>(whole: Whole, held: Option<Frame<Bytes>>, too_large: bool) -> Flowed<R> {
    if too_large {
        Flowed::TooLargeToTheEnd(held)
    } else {
        Flowed::Whole(whole, held)
    }
}

/// Waits until the reader has taken everything, so that what is not kept does not pile up.
async fn caught_up<R>(pieces: &Sender<Piece<R>>) {
    // An error says that the reader left.
    pieces.reserve_many(PIECES).await.map(drop).ok();
}

/// Sends a piece. A reader that left ends nothing: the run goes on.
async fn send<R>(pieces: &Sender<Piece<R>>, piece: Piece<R>) {
    pieces.send(piece).await.ok();
}
