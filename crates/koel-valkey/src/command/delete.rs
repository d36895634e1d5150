//! `DEL key item` and `MDEL key item..`

use super::reply::Reply;
use crate::error::Error;
use crate::filter::Cuckoo;
use crate::keys::{Event, Keys};

pub(super) fn delete(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut is_removed = false;
    delete_by(keys, |filter| {
        is_removed = filter.remove(arguments[2]);
        is_removed
    })?;
    Ok(Reply::Bool(is_removed))
}

pub(super) fn delete_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut removed = vec![false; items.len()];
    delete_by(keys, |filter| {
        filter.remove_many(items, &mut removed);
        removed.contains(&true)
    })?;
    Ok(Reply::Bools(removed))
}

/// Calls `remove`, which tells whether it has removed anything.
fn delete_by(
    keys: &mut dyn Keys,
    remove: impl FnOnce(&mut dyn Cuckoo) -> bool,
) -> Result<(), Error> {
    let now = keys.now();
    let filter = keys.write(1).or_for_all(Error::NoFilterToDeleteFrom)?.complete_mut()?;
    let advanced = filter.advance(now);
    if remove(filter) {
        keys.changed(1, Event::Delete);
    } else if advanced {
        keys.changed(1, Event::Advance);
    }
    Ok(())
}
