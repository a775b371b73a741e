//! The database that the tests share; each test has a schema of its own in it.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

/// The database's URL.
pub(crate) fn url() -> String {
    std::env::var("DATABASE_URL").unwrap_or_else(|_| {
        panic!("there is no database: run ./test, or set DATABASE_URL to one to be written to")
    })
}

/// A connection of the test's own, past the store.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the client")]
    tokio::spawn(connection);
    client
}

/// A schema that no other test has, removed when dropped.
pub(crate) struct Schema {
    url: String,
    name: String,
}

impl Schema {
    /// A name that is not in use; the schema itself is made by whoever uses it.
    pub(crate) fn new(url: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self {
            url: url.to_owned(),
            name: format!("test_{process}_{count}_{:08x}", rand::random::<u32>()),
        }
    }

    /// The name of a table in it.
    pub(crate) fn table(&self) -> String {
        format!("{}.idempotency", self.name)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (url, name) = (self.url.clone(), self.name.clone());
        let clear = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let sql = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
                client(&url).await.batch_execute(&sql).await.unwrap();
            });
        };
        // A runtime cannot be entered from within another one.
        drop(std::thread::spawn(clear).join());
    }
}
