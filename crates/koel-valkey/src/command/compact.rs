//! `COMPACT key`

use super::merge::working;
use super::parts::{Host, Made, NewValue, copy};
use super::reply::Reply;
use crate::error::Error;
use crate::filter::{Cuckoo, Filter};
use crate::keys::{Event, Keys, Value};

pub(super) fn compact(keys: &mut dyn Keys, _: &[&[u8]]) -> Result<Reply, Error> {
    let now = keys.now();
    let filter = keys.write(1).or_for_all(Error::NoFilterToCompact)?.complete_mut()?;
    filter.advance(now);
    filter.compact();
    keys.changed(1, Event::Compact);
    Ok(Reply::Ok)
}

/// What is taken on a thread: a copy, a smaller table, and what the library works with.
fn most_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(2).saturating_add(working(bytes))
}

/// Whether it is a large filter without a window, and room for two copies of it and for work.
///
/// # Errors
/// None.
pub fn is_long(keys: &mut dyn Keys, _: &[&[u8]], least: u64) -> Result<bool, Error> {
    let Value::Filter(Filter::Native(filter)) = keys.read(1) else { return Ok(false) };
    let bytes = filter.bytes();
    Ok(bytes >= least && keys.has_room(most_bytes(bytes)).is_ok())
}

/// Compacts a copy.
///
/// # Errors
/// As COMPACT, and [`Error::Room`].
pub fn work(host: &dyn Host, _: &[&[u8]], number: u64) -> Result<Made, Error> {
    host.ask(|keys| {
        let filter = keys.read(1).or_for_all(Error::NoFilterToCompact)?;
        let bytes = filter.bytes() as u64;
        keys.has_room(most_bytes(bytes))
    })?;
    let mut filter = copy(host, 1, number)?;
    filter.compact();
    Ok(Made::Value(NewValue { filter: Box::new(filter), follows: true, event: Event::Compact }))
}
