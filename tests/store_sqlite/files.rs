//! A file that cannot be the store's is told apart when it is opened.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use tower_idempotency::Error;
use tower_idempotency::store::{SqliteStore, Store};

use crate::child;
use crate::support::{DAY, File, claim_of, finish};

#[test]
fn a_file_that_is_no_database_is_refused() {
    let file = File::new();
    fs::write(file.path(), "Dear diary, ".repeat(1000)).unwrap();
    let error = refused(&file);
    assert!(error.is_misconfigured(), "{error:?}");
    assert_eq!(error.to_string(), "the file is no SQLite database");
}

#[test]
fn a_file_of_a_later_version_is_refused() {
    let file = File::new();
    drop(file.open());
    file.sql("PRAGMA user_version = 99");
    let error = refused(&file);
    assert!(error.is_misconfigured(), "{error:?}");
    assert!(error.to_string().contains("later version"), "{error}");
}

#[test]
fn a_database_of_another_application_is_refused_and_left_alone() {
    for version in [1, 7] {
        let file = File::new();
        file.sql(&format!(
            "CREATE TABLE diary (text TEXT); PRAGMA user_version = {version}"
        ));
        let error = refused(&file);
        assert!(error.is_misconfigured(), "{error:?}");
        assert!(error.to_string().contains("another application"), "{error}");
        assert_eq!(file.count("SELECT count(*) FROM sqlite_schema"), 1);
    }
}

#[tokio::test]
async fn a_database_with_tables_of_the_application_is_shared() {
    let file = File::new();
    file.sql("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1)");
    let store = file.open();
    finish(&store, "a", DAY).await;
    assert_eq!(file.count("SELECT count(*) FROM orders"), 1);
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let file = File::new();
    let error = SqliteStore::open(file.path().join("deeper.db")).unwrap_err();
    assert!(error.is_misconfigured(), "{error:?}");
}

#[test]
fn a_path_that_names_no_file_is_refused() {
    for path in ["", ":memory:"] {
        assert!(SqliteStore::open(path).unwrap_err().is_misconfigured());
    }
}

#[test]
fn a_path_is_never_read_as_a_url() {
    let file = File::new();
    let path = file.path().with_file_name("file:chat.db?mode=memory");
    drop(SqliteStore::open(&path).unwrap());
    assert!(path.exists());
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_no_wrong_answer() {
    let file = File::new();
    let store = file.open();
    for i in 0..200 {
        finish(&store, &i.to_string(), DAY).await;
    }
    store.shutdown().await;
    let mut bytes = fs::OpenOptions::new()
        .write(true)
        .open(file.path())
        .unwrap();
    bytes.seek(SeekFrom::Start(4096)).unwrap();
    bytes.write_all(&vec![0xa5; 40 * 4096]).unwrap();
    let error = match SqliteStore::open(file.path()) {
        Ok(store) => store.claim(&claim_of(&["0"])).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_corrupt(), "{error:?}");
}

#[tokio::test]
async fn a_damaged_record_fails_the_calls_that_read_it_and_no_other() {
    let file = File::new();
    let store = file.open();
    finish(&store, "a", DAY).await;
    finish(&store, "b", DAY).await;
    file.sql("UPDATE idempotency_claims SET record = x'ff00' WHERE id = 'a'");
    assert!(
        store
            .claim(&claim_of(&["a"]))
            .await
            .unwrap_err()
            .is_corrupt()
    );
    assert!(store.claim(&claim_of(&["b"])).await.is_ok());
}

#[test]
fn a_read_only_file_is_refused() {
    let file = File::new();
    drop(file.open());
    let lines = child::output(&file, "open-read-only");
    assert_eq!(lines, ["misconfigured the database file is read-only"]);
}

/// What the operating system refuses to write is an error that may pass; what was acknowledged
/// before is there afterwards.
///
/// Field case B116.
#[tokio::test]
async fn a_full_disk_is_retryable_and_loses_nothing_that_was_acknowledged() {
    let file = File::new();
    let lines = child::output(&file, "fill");
    let (last, recorded) = lines.split_last().unwrap();
    assert_eq!(last, "retryable");
    assert!(recorded.len() > 10, "{recorded:?}");
    let store = file.open();
    for line in recorded {
        child::assert_kept(&store, line).await;
    }
}

fn refused(file: &File) -> Error {
    SqliteStore::open(file.path()).unwrap_err()
}
