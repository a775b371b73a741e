//! Messages, as the server gives them.

use std::time::SystemTime;

use bytes::Bytes;
use tokio_postgres::Row;

use crate::store::postgres::fault::Fault;
use crate::store::queue::arrival::Place;
use crate::store::queue::turn::Waiting;

/// The message in a row's columns from `first` on: place, attempt, when it was received, fault,
/// raw. `None` if there is no message in them.
pub(super) fn message(row: &Row, first: usize) -> Result<Option<Waiting>, Fault> {
    let place: Option<i64> = row.try_get(first).map_err(Fault::corrupt)?;
    let Some(place) = place else {
        return Ok(None);
    };
    let attempt: i64 = row.try_get(first + 1).map_err(Fault::corrupt)?;
    let received_at: SystemTime = row.try_get(first + 2).map_err(Fault::corrupt)?;
    let fault: Option<String> = row.try_get(first + 3).map_err(Fault::corrupt)?;
    let raw: &[u8] = row.try_get(first + 4).map_err(Fault::corrupt)?;
    let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
    let message = Waiting::new(Place::new(place), received_at, Bytes::copy_from_slice(raw));
    Ok(Some(message.tried(attempt, fault)))
}
