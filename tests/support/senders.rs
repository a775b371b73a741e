//! The channel of each sender whose requests are among the fixtures. Add one here, and its fixtures
//! and its terms are tested.

use tower_idempotency::channel::{
    Bird, Channel, Chatwoot, CloudEvents, DiscordEvents, DiscordInteractions, GitHub, GoogleChat,
    IdempotencyKey, Infobip, Instagram, Intercom, Line, Matrix, Messenger, Scope, Slack,
    StandardWebhooks, Sunshine, Teams, Telegram, Twilio, Viber, Vonage, WeChat, WhatsApp,
};

/// The account that a channel is told where the body does not name it.
const TOLD: &str = "told";

/// The channel called `name` in the fixtures.
pub(crate) fn channel(name: &str) -> Option<Box<dyn Channel>> {
    let told = || Scope::fixed(TOLD);
    Some(match name {
        "bird" => Box::new(Bird::unverified()),
        "chatwoot" => Box::new(Chatwoot::unverified()),
        "cloudevents" => Box::new(CloudEvents::unverified()),
        "discord_interactions" => Box::new(DiscordInteractions::unverified()),
        "discord_webhook_events" => Box::new(DiscordEvents::unverified()),
        "github" => Box::new(GitHub::unverified()),
        "google_chat" => Box::new(GoogleChat::unverified(told())),
        "infobip" => Box::new(Infobip::unverified(told())),
        "instagram" => Box::new(Instagram::unverified()),
        "intercom" => Box::new(Intercom::unverified()),
        "line" => Box::new(Line::unverified()),
        "matrix" => Box::new(Matrix::unverified(told())),
        "messenger" => Box::new(Messenger::unverified()),
        "slack" => Box::new(Slack::unverified()),
        "standard_webhooks" => Box::new(StandardWebhooks::unverified(told())),
        "sunshine" => Box::new(Sunshine::unverified()),
        "teams" => Box::new(Teams::unverified()),
        "telegram" => Box::new(Telegram::unverified(told())),
        "twilio" => Box::new(Twilio::unverified()),
        "viber" => Box::new(Viber::unverified(told())),
        "vonage" => Box::new(Vonage::unverified()),
        "webchat" => Box::new(IdempotencyKey::scoped_by(told()).named("webchat")),
        "wechat" => Box::new(WeChat::unverified()),
        "whatsapp" => Box::new(WhatsApp::unverified()),
        _ => return None,
    })
}
