//! `memory:`

use crate::error::Error;
use crate::store::boxed::BoxStore;
use crate::store::memory::store::MemoryStore;

pub(super) fn open(rest: &str) -> Result<BoxStore, Error> {
    if rest.is_empty() {
        Ok(BoxStore::new(MemoryStore::new()))
    } else {
        Err(Error::misconfigured(
            "nothing may stand behind `memory:` in a store's URL",
        ))
    }
}
