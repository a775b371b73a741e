//! An effect, as its handler gets it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use tower_service::Service;

use crate::body::request::RequestBody;
use crate::claimed::{Claimed, Message};
use crate::error::{BoxError, Error};
use crate::inbox::failure::Failure;
use crate::key::Conversation;

/// One effect that is to happen: given to the closure of
/// [`Outbox::each`](crate::effects::Outbox::each).
#[derive(Clone, Debug)]
pub struct Effect {
    name: String,
    payload: Bytes,
    claimed: Claimed,
    message: Message,
}

impl Effect {
    /// Which effect it is, as it was enqueued.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was enqueued with.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Which attempt this is, from 1. An attempt that its worker did not survive is counted.
    pub fn attempt(&self) -> u32 {
        self.message.attempt()
    }

    /// The conversation of the message whose effect it is, if it has one.
    pub fn conversation(&self) -> Option<&Conversation> {
        self.message.delivery().in_conversation()
    }

    /// A key to pass on to the system where the effect happens: the same for every attempt of this
    /// effect, another for each effect and step. See [`Message::step_key`].
    pub fn step_key(&self, step: &str) -> String {
        self.message.step_key(step)
    }

    /// The right to run it: lends a transaction that is committed with the effect's end, and takes
    /// further effects.
    pub fn claimed(&self) -> &Claimed {
        &self.claimed
    }

    async fn of<B>(request: Request<RequestBody<B>>) -> Result<Self, BoxError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let claimed = head.extensions.get::<Claimed>().cloned();
        let message = claimed
            .as_ref()
            .and_then(|claimed| claimed.messages().first());
        let (Some(message), Some(claimed)) = (message.cloned(), &claimed) else {
            return Err(Error::corrupt("an effect came without its message").into());
        };
        let payload = body.collect().await.map_err(Into::into)?.to_bytes();
        Ok(Self {
            name: head.uri.path().trim_start_matches('/').to_owned(),
            payload,
            claimed: claimed.clone(),
            message,
        })
    }
}

/// A closure that handles effects, as a service.
#[derive(Clone, Debug)]
pub struct Each<F>(pub(crate) F);

impl<F, W, E, B> Service<Request<RequestBody<B>>> for Each<F>
where
    F: FnOnce(Effect) -> W + Clone + Send + 'static,
    W: Future<Output = Result<(), E>> + Send,
    E: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Empty<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<B>>) -> Self::Future {
        let handle = self.0.clone();
        Box::pin(async move {
            let effect = Effect::of(request).await?;
            let Err(error) = handle(effect).await else {
                return Ok(Response::default());
            };
            let error = error.into();
            // The handler's own words for how it goes on.
            let Some(failure) = error.downcast_ref::<Failure>().copied() else {
                return Err(error);
            };
            let mut response = Response::default();
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.extensions_mut().insert(failure);
            Ok(response)
        })
    }
}
