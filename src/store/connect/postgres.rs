//! `postgres://…`

use crate::error::Error;
use crate::store::boxed::BoxStore;
use crate::store::postgres::store::PostgresStore;

/// Makes the tables if they are not there, as the other stores do.
pub(super) async fn open(url: &str) -> Result<BoxStore, Error> {
    let store = PostgresStore::connect(url).await?;
    store.migrate().await?;
    Ok(BoxStore::new(store))
}
