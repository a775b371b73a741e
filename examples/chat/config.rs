//! The example's settings, from the environment.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use tower_idempotency::BoxError;

pub(crate) struct Config {
    /// `ADDR`: where to listen. Port 0 takes any free one.
    pub(crate) addr: String,
    /// `CHAT_DB`: the file that holds everything. Default: `chat.db` in the temporary folder.
    pub(crate) db: PathBuf,
    /// `DATABASE_URL`: another store for the keys. The application's own tables stay in the file.
    pub(crate) database_url: Option<String>,
    /// `DELAY_MS`: how long each handler takes.
    pub(crate) delay: Duration,
    /// `BOT_DELAY_MS`: how long the slow bot takes behind its queue.
    pub(crate) bot_delay: Duration,
    /// `LEASE_MS`: after how long the work of a killed process may be taken over.
    pub(crate) lease: Duration,
    /// `UNPROTECTED=1`: leaves the layer out, to see what it is there for.
    pub(crate) unprotected: bool,
}

impl Config {
    pub(crate) fn from_env() -> Result<Self, BoxError> {
        Ok(Self {
            addr: text("ADDR").unwrap_or_else(|| "127.0.0.1:3000".to_owned()),
            db: env::var_os("CHAT_DB")
                .map_or_else(|| env::temp_dir().join("chat.db"), PathBuf::from),
            database_url: text("DATABASE_URL"),
            delay: millis("DELAY_MS", 300)?,
            bot_delay: millis("BOT_DELAY_MS", 2_400)?,
            lease: millis("LEASE_MS", 10_000)?,
            unprotected: text("UNPROTECTED").is_some_and(|value| value != "0"),
        })
    }
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn millis(name: &str, default: u64) -> Result<Duration, BoxError> {
    let millis = match text(name) {
        None => default,
        Some(value) => value
            .parse()
            .map_err(|e| format!("{name}={value} is no number of milliseconds: {e}"))?,
    };
    Ok(Duration::from_millis(millis))
}
