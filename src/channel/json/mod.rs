//! JSON bodies: reads a few places out of a document, and cuts elements out of its arrays.

pub(crate) mod beside;
mod cursor;
mod cut;
pub(crate) mod fault;
pub(crate) mod found;
pub(crate) mod path;
pub(crate) mod pick;
mod place;
mod read;
pub(crate) mod reader;
pub(crate) mod shape;
pub(crate) mod tree;
