//! `DEL key item` and `MDEL key item..`

use super::items::as_keys;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Cuckoo;
use crate::keys::{Event, Keys};

pub(super) fn delete(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut is_removed = false;
    delete_by(keys, &arguments[2..3], |filter, keys| {
        is_removed = filter.remove(keys[0]);
        is_removed
    })?;
    Ok(Reply::Bool(is_removed))
}

pub(super) fn delete_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut removed = vec![false; items.len()];
    delete_by(keys, items, |filter, keys| {
        filter.remove_many(keys, &mut removed);
        removed.contains(&true)
    })?;
    Ok(Reply::Bools(removed))
}

/// Calls `remove` with the keys of the items, which tells whether it has removed anything.
fn delete_by(
    keys: &mut dyn Keys,
    items: &[&[u8]],
    remove: impl FnOnce(&mut dyn Cuckoo, &[&[u8]]) -> bool,
) -> Result<(), Error> {
    let now = keys.now();
    let filter = keys.write(1).or_for_all(Error::NoFilterToDeleteFrom)?.complete_mut()?;
    let (is_removed, advanced) = as_keys(filter.key_form()?, items, |items| {
        let advanced = filter.advance(now);
        (remove(filter, items), advanced)
    })?;
    if is_removed {
        keys.changed(1, Event::Delete);
    } else if advanced {
        keys.changed(1, Event::Advance);
    }
    Ok(())
}
