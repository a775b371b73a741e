//! The lines to try, with the address that the server really has.

use std::io::{self, Write};
use std::net::SocketAddr;

use crate::config::Config;

/// Prints where the server listens, then what to try. The first line is for programs, too.
pub(crate) fn print(address: SocketAddr, config: &Config) -> io::Result<()> {
    let protection = if config.unprotected {
        "\nUNPROTECTED: no layer. Every repeat is handled again.\n"
    } else {
        ""
    };
    // Fresh ids at each start: those of the last start are done, and would only be replayed.
    let fresh = rand::random::<u16>();
    let text = TEXT
        .replace("HOST", &address.to_string())
        .replace("FRESH", &format!("{fresh:04x}"));
    let text = format!(
        "listening on http://{address}\ndata in {}\n{protection}{text}",
        config.db.display()
    );
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

const TEXT: &str = r#"
Open http://HOST/ and send with "Lose the next response", or paste into another terminal:

# The web chat. Sent twice with one key: one message, and the second answer is the first one.
send() { curl -i http://HOST/chat/FRESH/messages -H 'X-User: ann' -H "Idempotency-Key: $1" \
    -H 'Content-Type: application/json' -d "{\"text\": \"$2\"}"; echo; }
send FRESH-1 hello
send FRESH-1 hello
send FRESH-1 'something else under the same key'
curl http://HOST/chat/FRESH/messages; echo

# WhatsApp. "yes" is delivered three times, twice at once: one order, one question.
whatsapp() { curl -s http://HOST/${3:-webhooks}/whatsapp -H 'Content-Type: application/json' -d '
  {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [{"field": "messages",
   "value": {"metadata": {"phone_number_id": "106540352242922"}, "messages": [{"id": "'$1'",
   "from": "'$3'FRESH", "type": "text", "text": {"body": "'$2'"}}]}}]}]}'; echo; }
whatsapp wamid.FRESH-1 order
whatsapp wamid.FRESH-2 yes & whatsapp wamid.FRESH-2 yes; wait
whatsapp wamid.FRESH-2 yes
curl http://HOST/orders; echo

# Another WhatsApp number, whose bot takes 2.4 s: acknowledged at once, handled from a queue, once.
whatsapp wamid.FRESH-3 order inbox
whatsapp wamid.FRESH-4 yes inbox; whatsapp wamid.FRESH-4 yes inbox
sleep 6; curl http://HOST/orders; echo

# Telegram. Update ids are counted per bot, and the bot is in the path.
telegram() { curl -s http://HOST/webhooks/telegram/FRESH -H 'Content-Type: application/json' -d '
  {"update_id": '$1', "message": {"message_id": 7, "date": 1749416383, "chat": {"id": 42},
   "text": "'$2'"}}'; echo; }
telegram 1 order
telegram 1 order

curl http://HOST/stats; echo
"#;
