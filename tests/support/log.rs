//! What is logged, for tests of a process with one subscriber.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// Keeps what is logged, by thread: each test has one.
///
/// One subscriber for all of them: tests that set theirs and drop it at the same time could miss
/// events, since what is listened to is remembered for the whole process.
#[derive(Clone, Copy)]
pub(crate) struct Log;

thread_local! {
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Log {
    /// Listens to everything from here on.
    pub(crate) fn begin() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(Level::TRACE)
                .with_ansi(false)
                .with_writer(Self)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
    }

    /// The first line that says this.
    pub(crate) fn line(says: &str) -> String {
        let all = Self::text();
        let mut lines = all.lines().filter(|line| line.contains(says));
        let line = lines.next();
        line.unwrap_or_else(|| panic!("nobody says {says}: {all}"))
            .to_owned()
    }

    pub(crate) fn text() -> String {
        LOGGED.with_borrow(|logged| String::from_utf8(logged.clone()).unwrap())
    }
}
