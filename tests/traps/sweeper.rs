//! A store that nobody sweeps.

use deadpool_postgres::{Manager, Pool};
use tokio_postgres::NoTls;
use tower_idempotency::store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};

use crate::log::Log;
use crate::said;

const SAYS: &str = "this store has no sweeper";

#[tokio::test]
async fn a_file_without_a_sweeper_is_one_warning() {
    Log::begin();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    drop(SqliteStore::open(&file).unwrap());
    assert_eq!(said(SAYS), 0);
    let unswept = SqliteOptions::new().without_sweeper();
    drop(SqliteStore::with_options(&file, &unswept).unwrap());
    assert_eq!(said(SAYS), 1);
}

#[tokio::test]
async fn a_database_without_a_sweeper_is_one_warning() {
    Log::begin();
    // Nobody connects: the options are enough to know.
    let pool = Pool::builder(Manager::new(tokio_postgres::Config::new(), NoTls));
    let pool = pool.build().unwrap();
    drop(PostgresStore::from_pool_with(
        pool.clone(),
        &PostgresOptions::new(),
    ));
    assert_eq!(said(SAYS), 0);
    let unswept = PostgresOptions::new().without_sweeper();
    drop(PostgresStore::from_pool_with(pool, &unswept));
    assert_eq!(said(SAYS), 1);
}
