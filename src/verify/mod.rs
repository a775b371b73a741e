//! Verifiers: did the sender send these very bytes?

pub(crate) mod contract;
#[cfg(feature = "verify")]
mod scheme;
pub(crate) mod verified;

pub use contract::Verify;
pub use verified::Verified;

#[cfg(feature = "verify")]
pub use scheme::{
    ChatwootSignature, DiscordSignature, GitHubSignature, HeaderToken, HmacSignature,
    IntercomSignature, LineSignature, MatrixToken, MetaSignature, Secret, SlackSignature,
    StandardSignature, SunshineToken, TelegramToken, TwilioSignature, ViberSignature,
    WeChatSignature,
};
