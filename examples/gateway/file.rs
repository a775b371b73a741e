//! The file, as it is written. Each value knows where it stands.

use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Where to listen, such as `0.0.0.0:8080`.
    pub(crate) listen: Spanned<String>,
    /// Where to tell the counts, in Prometheus' text format. Default: nowhere.
    pub(crate) metrics: Option<Spanned<String>>,
    /// How long runs may go on at the end. Default: 30 s.
    pub(crate) drain: Option<Spanned<String>>,
    #[serde(default, rename = "route")]
    pub(crate) routes: Vec<Spanned<Route>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    /// The path, and all that is below it. The longest one speaks.
    pub(crate) path: Spanned<String>,
    /// Whom requests are passed on to, such as `http://127.0.0.1:9000`.
    pub(crate) upstream: Spanned<String>,
    /// Who speaks there. Without it and `json_path` the route streams through.
    pub(crate) channel: Option<Spanned<String>>,
    /// Where the ids of messages are, for senders that have no channel of their own.
    pub(crate) json_path: Option<Spanned<String>>,
    /// What keys under `json_path` are called.
    pub(crate) name: Option<Spanned<String>>,
    /// Whose ids they are.
    pub(crate) scope: Option<Spanned<Scope>>,
    /// Shares the keys of `idempotency-key` among all clients.
    pub(crate) unscoped: Option<Spanned<bool>>,
    /// Refuses requests without a key.
    pub(crate) required: Option<Spanned<bool>>,
    /// The environment variable that holds the sender's secret.
    pub(crate) secret_env: Option<Spanned<String>>,
    /// The header that holds the HMAC-SHA256 of the body, under `json_path`.
    pub(crate) signature_header: Option<Spanned<String>>,
    /// What stands in front of it, such as `sha256=`.
    pub(crate) signature_prefix: Option<Spanned<String>>,
    /// Believes every sender.
    pub(crate) unverified: Option<Spanned<bool>>,
    /// When the sender is answered: `in-line`, when the upstream has; `ack-first`, when the message
    /// is stored. Default: `in-line`.
    pub(crate) mode: Option<Spanned<String>>,
    /// With `ack-first`: the upstream sends its replies by itself, not in its answer's body.
    pub(crate) reply_elsewhere: Option<Spanned<bool>>,
    /// How long records are kept, such as `8days`. Default: the channel's.
    pub(crate) keep: Option<Spanned<String>>,
    /// How long a repeat waits for the first run. Default: the channel's.
    pub(crate) wait: Option<Spanned<String>>,
    /// How long the upstream may take for the head of its answer. Default: 60 s.
    pub(crate) timeout: Option<Spanned<String>>,
    /// The largest delivery, in bytes. Default: 1 MiB.
    pub(crate) max_request: Option<Spanned<usize>>,
}

/// Where a scope is read from.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    Header(String),
    Segment(usize),
    Fixed(String),
}
