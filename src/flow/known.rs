//! What an application found out about a message whose outcome was unknown.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use crate::channel::contract::Channel;
use crate::error::Error;
use crate::flow::context::Context;
use crate::flow::recording::{ack_record, whole_record};
use crate::key::Key;
use crate::record::Whole;
use crate::store::contract::Store;
use crate::store::lease::End;
use crate::store::unknown::{Resolved, settle_unknown};

/// What an application found out about a message whose outcome was unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Known {
    /// Its work was done. A repeat gets the channel's [ack](crate::channel::Terms::ack).
    Done,
    /// Its work was done, and this is what a repeat gets: the answer that its handler would have
    /// given.
    DoneWith(Response<Bytes>),
    /// Its work was not done: the next repeat runs.
    NotDone,
}

/// Settles `key` as is known, with its channel's terms.
pub(crate) async fn settle<S: Store, C: Channel>(
    context: &Context<S, C>,
    key: &Key,
    known: Known,
) -> Result<Resolved, Error> {
    let terms = context.channel.all_terms();
    let terms = terms
        .into_iter()
        .find(|terms| *terms.channel == *key.channel());
    let terms = terms
        .ok_or_else(|| Error::misconfigured("the key is of a channel that this layer has not"))?;
    let record = match known {
        Known::NotDone => None,
        Known::Done => Some(ack_record(&terms.ack)),
        Known::DoneWith(response) => {
            let (parts, body) = response.into_parts();
            let whole = Whole {
                frames: if body.is_empty() {
                    Vec::new()
                } else {
                    vec![body]
                },
                trailers: None,
                sized: true,
            };
            Some(whole_record(&context.options, &parts, &whole))
        }
    };
    let end = record.map_or(End::Release, |record| End::Record {
        record: Arc::new(record),
        keep: context.options.keep(terms),
    });
    context
        .within(settle_unknown(&context.store, key, end))
        .await
}
