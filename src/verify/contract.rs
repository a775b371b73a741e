//! What a verifier owes: it tells whether the sender sent these very bytes.

use http::request::Parts;

use crate::channel::contract::Refusal;

/// Tells whether the sender sent these very bytes, before anything is read out of them.
///
/// An implementer owes:
/// * **totality**: an answer for any head and any bytes, never a panic;
/// * **all of it**: what was not checked is not verified. A scheme that covers only a header, or
///   only a token, says so in its docs;
/// * **constant time** where a secret or a signature is compared;
/// * **silence**: a refusal says which check failed and never what was expected;
/// * **speed**: it runs on the request's path and must not block. Keys that come over the network
///   are fetched elsewhere and read from memory here.
///
/// A closure is a verifier, which is how signed tokens (JWT) are checked with a library of one's
/// own choice:
///
/// ```
/// use http::request::Parts;
/// use tower_idempotency::channel::Refusal;
/// use tower_idempotency::verify::Verify;
///
/// fn verifier() -> impl Verify {
///     |head: &Parts, _body: &[u8]| match head.headers.get("authorization") {
///         Some(token) if token_is_good(token.as_bytes()) => Ok(()),
///         _ => Err(Refusal::unverified("the bearer token is missing or bad")),
///     }
/// }
/// # fn token_is_good(_token: &[u8]) -> bool { true }
/// # let _ = verifier();
/// ```
///
/// A secret alone is none: a scheme says how it is used.
///
/// ```compile_fail,E0277
/// tower_idempotency::channel::WhatsApp::verified_by("secret");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not verify requests",
    label = "not a verifier",
    note = "a verifier is made of a secret, such as `MetaSignature::new(secret)` for WhatsApp, Messenger and \
            Instagram; the module `verify` lists which sender has which",
    note = "a closure is one if its arguments have types: `|head: &Parts, body: &[u8]| -> Result<(), Refusal>`"
)]
pub trait Verify: Send + Sync + 'static {
    /// Whether the sender sent this head and this body.
    ///
    /// # Errors
    /// A [`Refusal`], usually [`Refusal::unverified`]: the request is answered 401, nothing is
    /// claimed, and its body is not read any further.
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal>;
}

#[diagnostic::do_not_recommend]
impl<F> Verify for F
where
    F: Fn(&Parts, &[u8]) -> Result<(), Refusal> + Send + Sync + 'static,
{
    fn verify(&self, head: &Parts, body: &[u8]) -> Result<(), Refusal> {
        self(head, body)
    }
}
