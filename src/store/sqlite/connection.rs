//! Opens a connection and sets what every connection of the store needs.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use crate::error::Error;
use crate::store::sqlite::fault;
use crate::store::sqlite::schema;

/// The connection that writes. Makes the file and its tables where they are not there.
pub(super) fn writing(path: &Path, busy_limit: Duration) -> Result<Connection, Error> {
    let mut connection = open(path, busy_limit)?;
    if connection.is_readonly(MAIN_DB).map_err(fault::of_open)? {
        return Err(Error::misconfigured(fault::READ_ONLY));
    }
    use_log(&connection, busy_limit)?;
    for (name, value) in WRITING {
        connection
            .pragma_update(None, name, value)
            .map_err(fault::of_open)?;
    }
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// A connection that only looks, on a file that [`writing`] has opened.
pub(super) fn reading(path: &Path, busy_limit: Duration) -> Result<Connection, Error> {
    let connection = open(path, busy_limit)?;
    connection
        .pragma_update(None, "query_only", "ON")
        .map_err(fault::of_open)?;
    Ok(connection)
}

/// The path in full, so that SQLite reads neither `file:` nor `:memory:` out of it and a later
/// change of the working directory changes nothing.
pub(super) fn full_path(path: &Path) -> Result<PathBuf, Error> {
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        return Err(Error::misconfigured(
            "a path to a file is needed; MemoryStore keeps rows in memory",
        ));
    }
    std::path::absolute(path)
        .map_err(|e| Error::misconfigured("the path cannot be made absolute").because(e))
}

fn open(path: &Path, busy_limit: Duration) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(fault::of_open)?;
    connection
        .busy_handler(Some(patience(busy_limit)))
        .map_err(fault::of_open)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Turns the write-ahead log on, once and for good.
///
/// SQLite does not call the busy handler here, since it would wait with a lock that the other
/// waits for: two processes that open a new file at once need the loop.
fn use_log(connection: &Connection, busy_limit: Duration) -> Result<(), Error> {
    let mut wait = patience(busy_limit);
    let mut waits = 0;
    loop {
        let mode: Result<String, _> =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => {
                return Err(Error::misconfigured(
                    "the file's place cannot hold a write-ahead log",
                ));
            }
            Err(error) if is_busy(&error) && wait(waits) => waits += 1,
            Err(error) => return Err(fault::of_open(error)),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Waits for another process's transaction: a little each time, `limit` in all.
///
/// SQLite's own waits grow to 100 ms. A transaction takes about one, so beside a process that
/// writes all the time the long waits would find the file busy nearly always.
fn patience(limit: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut began = Instant::now();
    move |waits| {
        if waits == 0 {
            began = Instant::now();
        }
        if began.elapsed() >= limit {
            return false;
        }
        pause(SHORTEST_PAUSE.saturating_mul(1 << waits.clamp(0, 5)));
        true
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the store's own thread waits for another process; no task runs on it"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}

const SHORTEST_PAUSE: Duration = Duration::from_micros(50);

/// More than the store has, so that none is ever prepared twice.
const STATEMENTS: usize = 128;

/// What the writing connection is set to.
///
/// * `synchronous`: a commit is answered when it is on the disk, not before;
/// * `fullfsync`: on Apple's systems a plain sync leaves the data in the drive's own memory;
/// * `journal_size_limit`: a log that one large transaction has blown up is cut down again;
/// * `secure_delete`: what was removed is overwritten where that costs no further writing;
/// * `cache_size`: 16 MiB, for the tree of the keys;
/// * `temp_store`: savepoints need no files.
const WRITING: [(&str, &str); 7] = [
    ("synchronous", "FULL"),
    ("fullfsync", "ON"),
    ("checkpoint_fullfsync", "ON"),
    ("journal_size_limit", "67108864"),
    ("secure_delete", "FAST"),
    ("cache_size", "-16384"),
    ("temp_store", "MEMORY"),
];
