//! A request's body is read, or it is said why not.

use bytes::Bytes;
use http::Version;
use http::header::EXPECT;
use http::request::Parts;
use http_body::Body;
use tokio::task::yield_now;

use crate::body::call::read_call;
use crate::body::read::{Begun, Limits, Read, Rest, Unread, read};
use crate::channel::contract::Channel;
use crate::error::BoxError;
use crate::flow::context::{Asked, Context};
use crate::pace::PATIENCE;
use crate::policy::{OnStreamingCall, Protocol};
use crate::problem::Problem;
use crate::store::contract::Store;

/// What came of a request's body.
pub(crate) enum Taken<B> {
    Whole(Read),
    /// A streaming call that the layer was told to let pass.
    Streaming(Begun<B>),
    Refused(Problem),
}

/// Reads a request's body whole, within the layer's limits.
pub(crate) async fn take<S, C, B>(
    context: &Context<S, C>,
    asked: &Asked<'_>,
    head: &Parts,
    body: B,
) -> Taken<B>
where
    S: Store,
    C: Channel,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let options = &context.options;
    let limits = Limits {
        bytes: options.max_request,
        time: options.read_limit,
    };
    let read = match (asked.protocol, options.on_streaming_call) {
        (Protocol::Http, _) => read(body, limits).await,
        (Protocol::Grpc, OnStreamingCall::Refuse) => Box::pin(read_call(body, limits, None)).await,
        (Protocol::Grpc, OnStreamingCall::PassUnprotected) => {
            Box::pin(read_call(body, limits, Some(PATIENCE))).await
        }
        (Protocol::GrpcWeb, _) => return Taken::Refused(Problem::grpc_web()),
    };
    let unread = match read {
        Ok(read) => {
            if head.version == Version::HTTP_2 && !read.announced {
                // A stream that is reset with NO_ERROR looks like a whole body. Its server drops
                // this future right after this poll, before anything is claimed.
                yield_now().await;
            }
            return Taken::Whole(read);
        }
        Err(unread) => unread,
    };
    match (unread, options.on_streaming_call) {
        (Unread::Streaming(begun), OnStreamingCall::PassUnprotected) => Taken::Streaming(begun),
        (Unread::Streaming(_), OnStreamingCall::Refuse) => {
            Taken::Refused(Problem::streaming_call())
        }
        (Unread::Cut, _) => Taken::Refused(Problem::body_cut()),
        (Unread::Late, _) => Taken::Refused(match asked.protocol {
            Protocol::Http => Problem::body_late(limits.time),
            Protocol::Grpc | Protocol::GrpcWeb => Problem::call_late(limits.time),
        }),
        (Unread::TooLarge(rest), _) => Taken::Refused(too_large((context, asked), head, rest)),
    }
}

/// The client is answered while it is still sending, and may only look for the answer when it has
/// sent everything. gRPC clients look at once.
fn too_large<S: Store, C: Channel, B>(
    (context, asked): (&Context<S, C>, &Asked<'_>),
    head: &Parts,
    rest: Rest<B>,
) -> Problem
where
    B: Body<Data = Bytes> + Send + 'static,
{
    match (rest, asked.protocol) {
        (Rest::CutOff, _) => return Problem::too_large(None),
        // It waits to be told to go on, and is told not to.
        (Rest::Untouched(_), Protocol::Http) if head.headers.contains_key(EXPECT) => {}
        (Rest::Untouched(body) | Rest::Begun(body), Protocol::Http) => {
            context.detached.drain_body(body);
        }
        (Rest::Untouched(_) | Rest::Begun(_), Protocol::Grpc | Protocol::GrpcWeb) => {}
    }
    Problem::too_large(Some(context.options.max_request))
}
