//! The pool of connections: made, and shared out.

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;

use crate::error::Error;
use crate::store::postgres::options::PostgresOptions;

/// A pool of the store's own. No error holds the URL, which may carry a password.
pub(super) fn own(url: &str, options: &PostgresOptions) -> Result<Pool, Error> {
    let mut config: tokio_postgres::Config = url
        .parse()
        .map_err(|_| Error::misconfigured("the database's URL cannot be read"))?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(Error::misconfigured(
            "the database's URL asks for TLS: make a pool with TLS and use `from_pool`",
        ));
    }
    if config.get_application_name().is_none() {
        config.application_name("tower-idempotency");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.limit);
    }
    // A server that is gone without a word is noticed before the system's own quarter of an hour.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(options.limit * 2);
    }
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(config, NoTls, recycling);
    Pool::builder(manager)
        .max_size(reserved(options) + options.transactions)
        .build()
        .map_err(|e| Error::misconfigured("the pool cannot be made").because(e))
}

/// How many connections of a pool may be lent to runs at once.
pub(super) fn lendable(pool: &Pool, options: &PostgresOptions) -> usize {
    let size = pool.status().max_size;
    let left = size.saturating_sub(reserved(options)).max(size / 2);
    options.transactions.min(left).max(1)
}

/// Connections for claims, settlements, and the acceptances and reports of an inbox; and some for
/// looking, renewing, sweeping and forgetting.
fn reserved(options: &PostgresOptions) -> usize {
    options.lanes * 4 + 6
}
