//! The channel of each sender whose requests are among the fixtures. Add one here, and its fixtures
//! and its terms are tested.

use tower_idempotency::channel::{
    Channel, GitHub, IdempotencyKey, Matrix, Scope, Slack, StandardWebhooks, Telegram, Twilio,
    WeChat, WhatsApp,
};

/// The account that a channel is told where the body does not name it.
const TOLD: &str = "told";

/// The channel called `name` in the fixtures.
pub(crate) fn channel(name: &str) -> Option<Box<dyn Channel>> {
    let told = || Scope::fixed(TOLD);
    Some(match name {
        "github" => Box::new(GitHub::unverified()),
        "matrix" => Box::new(Matrix::unverified(told())),
        "slack" => Box::new(Slack::unverified()),
        "standard_webhooks" => Box::new(StandardWebhooks::unverified(told())),
        "telegram" => Box::new(Telegram::unverified(told())),
        "twilio" => Box::new(Twilio::unverified()),
        "webchat" => Box::new(IdempotencyKey::scoped_by(told()).named("webchat")),
        "wechat" => Box::new(WeChat::unverified()),
        "whatsapp" => Box::new(WhatsApp::unverified()),
        _ => return None,
    })
}
