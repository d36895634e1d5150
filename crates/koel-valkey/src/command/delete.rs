//! `DEL key item` and `MDEL key item..`

use super::reply::Reply;
use crate::error::Error;
use crate::keys::Keys;

pub(super) fn delete(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut removed = [false];
    delete_all(keys, &arguments[2..], &mut removed)?;
    Ok(Reply::Bool(removed[0]))
}

pub(super) fn delete_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut removed = vec![false; items.len()];
    delete_all(keys, items, &mut removed)?;
    Ok(Reply::Bools(removed))
}

fn delete_all(keys: &mut dyn Keys, items: &[&[u8]], removed: &mut [bool]) -> Result<(), Error> {
    let now = keys.now();
    let filter = keys.write(1).or_for_all(Error::NoFilterToDeleteFrom)?.complete_mut()?;
    let advanced = filter.advance(now);
    filter.remove(items, removed);
    if removed.contains(&true) {
        keys.changed(1, "del");
    } else if advanced {
        keys.changed(1, "advance");
    }
    Ok(())
}
