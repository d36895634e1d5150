//! `COMPACT key`

use super::merge::{copy, is_watched};
use super::parts::{Outcome, Work};
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

/// Begins to compact a filter without a window, if there is room for two copies of it.
///
/// # Errors
/// As COMPACT.
pub fn begin(
    keys: &mut dyn Keys,
    _arguments: &[&[u8]],
    least: u64,
    watch: u64,
) -> Result<Option<Work>, Error> {
    let Value::Filter(Filter::Native(filter)) = keys.read(1) else { return Ok(None) };
    let bytes = filter.bytes();
    if bytes < least || keys.has_room(bytes.saturating_mul(2)).is_err() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |host| {
        let compacted = copy(host, 1, watch).map(|mut filter| {
            filter.compact();
            filter
        });
        Box::new(move |keys| {
            let compacted = compacted?;
            if !is_watched(keys, 1, watch) {
                return Ok(Outcome::Again);
            }
            keys.put(1, compacted.into());
            keys.changed(1, Event::Compact);
            Ok(Outcome::Done(Reply::Ok))
        })
    })))
}
