//! The channels that have a name, and how each one's senders are verified.
//!
//! Senders that sign with tokens of an identity provider (Teams, Google Chat) are not among them.

use http::request::Parts;
use tower_idempotency::channel::{
    ByPath, Chatwoot, DiscordEvents, DiscordInteractions, GitHub, Instagram, Intercom, Line,
    Matrix, Messenger, Refusal, Scope, Slack, StandardWebhooks, Sunshine, Telegram, Twilio, Viber,
    WhatsApp,
};
use tower_idempotency::verify::{
    ChatwootSignature, DiscordSignature, GitHubSignature, IntercomSignature, LineSignature,
    MatrixToken, MetaSignature, SlackSignature, StandardSignature, SunshineToken, TelegramToken,
    TwilioSignature, Verify, ViberSignature,
};

/// How a request is verified: by the sender's secret, or not at all.
pub(crate) type Check = Box<dyn Fn(&Parts, &[u8]) -> Result<(), Refusal> + Send + Sync>;

/// A channel with a name.
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// The verifier for a secret; none if the secret is not of the sender's form.
    pub(crate) check: fn(String) -> Option<Check>,
    pub(crate) mount: Mount,
}

/// Adds the channel at a path.
#[derive(Clone, Copy)]
pub(crate) enum Mount {
    /// The sender's messages say whose they are.
    Alone(fn(ByPath, String, Check) -> ByPath),
    /// They do not; the text says what the scope is.
    Scoped(&'static str, fn(ByPath, String, Check, Scope) -> ByPath),
}

pub(crate) fn verify(verifier: impl Verify) -> Check {
    Box::new(move |head, body| verifier.verify(head, body))
}

/// The channel of a name.
pub(crate) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// All names.
pub(crate) fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

type Secret = fn(String) -> Option<Check>;

const fn alone(
    name: &'static str,
    check: Secret,
    mount: fn(ByPath, String, Check) -> ByPath,
) -> Preset {
    let mount = Mount::Alone(mount);
    Preset { name, check, mount }
}

const fn scoped(
    name: &'static str,
    check: Secret,
    scope: &'static str,
    mount: fn(ByPath, String, Check, Scope) -> ByPath,
) -> Preset {
    let mount = Mount::Scoped(scope, mount);
    Preset { name, check, mount }
}

const META: Secret = |secret| Some(verify(MetaSignature::new(secret)));
const DISCORD: Secret = |key| DiscordSignature::new(&key).ok().map(verify);

const PRESETS: &[Preset] = &[
    alone("whatsapp", META, |at, path, check| {
        at.at(path, WhatsApp::verified_by(check))
    }),
    alone("messenger", META, |at, path, check| {
        at.at(path, Messenger::verified_by(check))
    }),
    alone("instagram", META, |at, path, check| {
        at.at(path, Instagram::verified_by(check))
    }),
    scoped(
        "telegram",
        |token| Some(verify(TelegramToken::new(token))),
        "says which bot an update is for",
        |at, path, check, bot| at.at(path, Telegram::verified_by(check, bot)),
    ),
    alone(
        "slack",
        |secret| Some(verify(SlackSignature::new(secret))),
        |at, path, check| at.at(path, Slack::verified_by(check)),
    ),
    alone("discord-interactions", DISCORD, |at, path, check| {
        at.at(path, DiscordInteractions::verified_by(check))
    }),
    alone("discord-events", DISCORD, |at, path, check| {
        at.at(path, DiscordEvents::verified_by(check))
    }),
    alone(
        "line",
        |secret| Some(verify(LineSignature::new(secret))),
        |at, path, check| at.at(path, Line::verified_by(check)),
    ),
    scoped(
        "viber",
        |token| Some(verify(ViberSignature::new(token))),
        "says which account a message is for",
        |at, path, check, account| at.at(path, Viber::verified_by(check, account)),
    ),
    scoped(
        "matrix",
        |token| Some(verify(MatrixToken::new(token))),
        "says which homeserver it is",
        |at, path, check, server| at.at(path, Matrix::verified_by(check, server)),
    ),
    alone(
        "twilio",
        |token| Some(verify(TwilioSignature::new(token))),
        |at, path, check| at.at(path, Twilio::verified_by(check)),
    ),
    alone(
        "sunshine",
        |secret| Some(verify(SunshineToken::new(secret))),
        |at, path, check| at.at(path, Sunshine::verified_by(check)),
    ),
    alone(
        "intercom",
        |secret| Some(verify(IntercomSignature::new(secret))),
        |at, path, check| at.at(path, Intercom::verified_by(check)),
    ),
    alone(
        "chatwoot",
        |secret| Some(verify(ChatwootSignature::new(secret))),
        |at, path, check| at.at(path, Chatwoot::verified_by(check)),
    ),
    scoped(
        "standard-webhooks",
        |key| StandardSignature::new(&key).ok().map(verify),
        "says which sender it is",
        |at, path, check, sender| at.at(path, StandardWebhooks::verified_by(check, sender)),
    ),
    alone(
        "github",
        |secret| Some(verify(GitHubSignature::new(secret))),
        |at, path, check| at.at(path, GitHub::verified_by(check)),
    ),
];
