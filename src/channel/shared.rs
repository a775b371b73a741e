//! A channel behind a pointer is a channel.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;

use crate::channel::contract::{Channel, Concern, OnUnknown, Refusal, Terms};
use crate::delivery::Delivery;
use crate::key::Key;

macro_rules! delegate {
    ($pointer:ty) => {
        impl<C: Channel + ?Sized> Channel for $pointer {
            fn terms(&self, head: &Parts) -> &Terms {
                (**self).terms(head)
            }

            fn all_terms(&self) -> Vec<&Terms> {
                (**self).all_terms()
            }

            fn concern(&self, head: &Parts) -> Result<Concern, Refusal> {
                (**self).concern(head)
            }

            fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
                (**self).verify(head, body)
            }

            fn is_verifying(&self, head: &Parts) -> bool {
                (**self).is_verifying(head)
            }

            fn deliveries(&self, head: &Parts, body: &[u8]) -> Result<Vec<Delivery>, Refusal> {
                (**self).deliveries(head, body)
            }

            fn on_unknown(&self, head: &Parts) -> OnUnknown {
                (**self).on_unknown(head)
            }

            fn without(&self, head: &Parts, body: &Bytes, gone: &[&Key]) -> Option<Bytes> {
                (**self).without(head, body, gone)
            }
        }
    };
}

delegate!(Arc<C>);
delegate!(Box<C>);
