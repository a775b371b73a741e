//! The bodies on either side of the layer.

pub(crate) mod call;
mod joined;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tap;

pub use request::RequestBody;
pub use response::ResponseBody;
