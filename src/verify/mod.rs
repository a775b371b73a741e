//! Verifiers: did the sender send these very bytes?
//!
//! # What verification protects from
//!
//! A key is claimed by whoever names it first. Without verification anyone who can reach the
//! endpoint and guess an id claims it: his request runs, and the real message is answered as a
//! repeat and never handled. Ids are guessed easily: Telegram's `update_id` and Matrix's `txnId`
//! count up by one, and those of Teams are the time in milliseconds.
//!
//! So a channel is verified first. Both live in one layer, and nobody can mount them the other way
//! round: a request that is refused is answered 401, nothing is read out of its body, nothing is
//! claimed and nothing is stored. With an inbox, what is stored was verified before.
//!
//! A sender's channel is made by `verified_by`, or by `unverified`, which says so in code: right
//! where the request was verified in front of the layer, and nowhere else. What reads a sender of
//! one's own, such as a [`JsonPath`](crate::channel::JsonPath), becomes a channel by the same two
//! words, at its end; a [`Channel`](crate::channel::Channel) written by hand is given a verifier by
//! [`Verified::new`]. What does not concern a channel (safe methods, other paths) is not verified either: the handler answers GET
//! handshakes, and may ask the same verifier.
//!
//! ```
//! # #[cfg(feature = "verify")] {
//! use tower_idempotency::channel::GitHub;
//! use tower_idempotency::verify::GitHubSignature;
//!
//! let verified = GitHub::verified_by(GitHubSignature::new("webhook secret"));
//! let in_front = GitHub::unverified();
//! # }
//! ```
//!
//! # The schemes
//!
//! | sender | verifier | covers | how old it may be |
//! | --- | --- | --- | --- |
//! | WhatsApp, Messenger, Instagram | [`MetaSignature`] | body | any age: no timestamp |
//! | Slack | [`SlackSignature`] | time, body | 5 min; each attempt is signed anew |
//! | Twilio | [`TwilioSignature`] | URL, form fields (or the body's SHA-256) | any age: no timestamp |
//! | LINE | [`LineSignature`] | body | any age: no timestamp |
//! | Viber | [`ViberSignature`] | body | any age: no timestamp |
//! | Discord | [`DiscordSignature`] | time, body | any age, can be set |
//! | Chatwoot | [`ChatwootSignature`] | time, body | any age, can be set |
//! | Intercom | [`IntercomSignature`] | body | any age: no timestamp |
//! | GitHub | [`GitHubSignature`] | body, not the id, which is a header | any age: no timestamp |
//! | Standard Webhooks | [`StandardSignature`] | id, time, body | 5 min; each attempt is signed anew |
//! | WeChat | [`WeChatSignature`] | time, **not** the body | any age, can be set |
//! | Telegram | [`TelegramToken`] | nothing: a token | any age |
//! | Matrix | [`MatrixToken`] | nothing: a token | any age |
//! | Sunshine Conversations | [`SunshineToken`] | nothing: a token | any age |
//! | Teams, Google Chat, Vonage, Bird | a closure and a JWT library, see [`Verify`] | what the token claims | its `exp` |
//! | any other | [`HmacSignature`], [`HeaderToken`], a closure | body; nothing; what it checks | any age |
//!
//! A tolerance bounds how long a request that somebody has recorded can be sent again. Under the
//! layer a repeat is answered and not run, for as long as its record is kept. Where a sender
//! repeats with the first signature, a tolerance would refuse the repeat and lose the message; so
//! there is none by default, except where the sender signs each attempt anew.
//!
//! An HMAC costs one pass of its hash over the body for each secret that is tried, so the one in
//! use stands first. Ed25519 costs a copy of the body and tens of microseconds. A token costs the
//! hash of a few bytes. A body is never parsed for it, except a form for Twilio.
//!
//! # Secrets
//!
//! Every verifier takes several: `new(…)` for the one, `also(…)` for the next. To rotate, add the
//! new secret beside the old one, deploy, change it at the sender, and drop the old one when its
//! last repeat has come. Signatures and tokens are compared in constant time. No secret is in any
//! `Debug` output, error or log line of this crate. An empty secret verifies nothing.
//!
//! The schemes need the feature `verify`, which is on by default; [`Verify`] and [`Verified`] are
//! always there.

pub(crate) mod contract;
#[cfg(feature = "verify")]
mod scheme;
pub(crate) mod unverified;
pub(crate) mod verified;

pub use contract::Verify;
pub use unverified::Unverified;
pub use verified::Verified;

#[cfg(feature = "verify")]
pub use scheme::{
    ChatwootSignature, DiscordSignature, GitHubSignature, HeaderToken, HmacSignature,
    IntercomSignature, LineSignature, MatrixToken, MetaSignature, Secret, SlackSignature,
    StandardSignature, SunshineToken, TelegramToken, TwilioSignature, ViberSignature,
    WeChatSignature,
};
