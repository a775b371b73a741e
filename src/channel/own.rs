//! Channels for senders of one's own, which are none before they say how they are verified.

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Refusal, Terms};
use crate::delivery::Delivery;
use crate::key::Key;

/// What a channel for a sender of one's own reads. It becomes a
/// [`Channel`](crate::channel::contract::Channel) by `verified_by` or by `unverified`, and by
/// nothing else, so that no endpoint is open to everybody without saying so.
pub(crate) trait Own {
    /// The channel's defaults.
    fn terms(&self) -> &Terms;

    /// The deliveries in the request, as a channel owes them.
    ///
    /// # Errors
    /// A [`Refusal`] if the request is wrong and must not run.
    fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal>;

    /// The body without the deliveries in `gone`, if it can be cut.
    fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
        let _ = (head, body, gone);
        None
    }
}

/// Makes what reads one's own sender a channel, once it is verified or says that it is not.
macro_rules! by_own {
    ($own:ty) => {
        impl<V: $crate::verify::contract::Verify> $crate::channel::contract::Channel
            for $crate::verify::verified::Verified<$own, V>
        {
            $crate::channel::own::reading!();

            fn verify(
                &self,
                head: &::http::request::Parts,
                body: &[u8],
            ) -> Result<(), $crate::channel::contract::Refusal> {
                self.verifier().verify(head, body)
            }

            fn is_verifying(&self, _head: &::http::request::Parts) -> bool {
                true
            }
        }

        impl $crate::channel::contract::Channel for $crate::verify::unverified::Unverified<$own> {
            $crate::channel::own::reading!();
        }
    };
}

/// The methods of a channel that reads what its inner one does.
macro_rules! reading {
    () => {
        fn terms(&self, _head: &::http::request::Parts) -> &$crate::channel::contract::Terms {
            $crate::channel::own::Own::terms(self.channel())
        }

        fn concern(
            &self,
            head: &::http::request::Parts,
        ) -> Result<$crate::channel::contract::Concern, $crate::channel::contract::Refusal> {
            Ok($crate::channel::json::reader::concern(head))
        }

        fn deliveries(
            &self,
            head: &::http::request::Parts,
            body: &[u8],
        ) -> Result<Vec<$crate::delivery::Delivery>, $crate::channel::contract::Refusal> {
            $crate::channel::own::Own::deliveries(self.channel(), head, body)
        }

        fn without(
            &self,
            head: &::http::request::Parts,
            body: &::bytes::Bytes,
            gone: &[&$crate::key::Key],
        ) -> Option<::bytes::Bytes> {
            $crate::channel::own::Own::without(self.channel(), head, body, gone)
        }
    };
}

pub(crate) use {by_own, reading};
