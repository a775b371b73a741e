//! `postgres://…`, without the feature.

use std::future::{Ready, ready};

use crate::error::Error;
use crate::store::boxed::BoxStore;

pub(super) fn open(_: &str) -> Ready<Result<BoxStore, Error>> {
    ready(Err(Error::misconfigured(
        "the store's URL asks for PostgreSQL: enable the feature `postgres`",
    )))
}
