//! `ADD key item`, `ADDNX key item` and
//! `INSERT[NX] key [CAPACITY n] [NOCREATE] ITEMS item..`

use std::slice;

use super::arguments::{self, Insert};
use super::create::create;
use super::reply::Reply;
use crate::error::{Error, Full};
use crate::filter::{Added, Cuckoo};
use crate::keys::{ADDED, Keys, Value};

/// After so many refused items, a command looks for room no more. A search without success takes
/// some tenths of a millisecond, and the server does nothing else meanwhile.
const MOST_REFUSED: usize = 64;

pub(super) fn add(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    add_one(keys, arguments, false)
}

pub(super) fn add_absent(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    add_one(keys, arguments, true)
}

pub(super) fn insert(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let added = add_all(keys, arguments, &arguments::insert(&arguments[2..])?, false)?;
    Ok(Reply::Added(added.into_iter().map(|added| added == Added::Yes).collect()))
}

pub(super) fn insert_absent(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let added = add_all(keys, arguments, &arguments::insert(&arguments[2..])?, true)?;
    let number = |added| match added {
        Added::Yes => 1,
        Added::Present => 0,
        Added::Full(_) => -1,
    };
    Ok(Reply::Array(added.into_iter().map(|added| Reply::Integer(number(added))).collect()))
}

fn add_one(keys: &mut dyn Keys, arguments: &[&[u8]], unique: bool) -> Result<Reply, Error> {
    let insert = Insert { settings: arguments::default(), create: true, items: &arguments[2..] };
    match add_all(keys, arguments, &insert, unique)?.first() {
        Some(&Added::Full(full)) => Err(Error::Full(full)),
        answer => Ok(Reply::Bool(answer == Some(&Added::Yes))),
    }
}

/// Adds items, the last of the arguments, to the filter of the key, which is created if it is
/// missing.
fn add_all(
    keys: &mut dyn Keys,
    arguments: &[&[u8]],
    insert: &Insert<'_>,
    unique: bool,
) -> Result<Vec<Added>, Error> {
    let (limit, now) = (keys.limit(), keys.now());
    let mut added = Vec::new();
    added.try_reserve_exact(insert.items.len()).map_err(|_| Error::NoMemory)?;
    let created = matches!(keys.write(1), Value::Missing);
    if created {
        if !insert.create {
            return Err(Error::NotFound);
        }
        create(keys, insert.settings)?;
    }
    let filter = keys.write(1).or(Error::NotFound)?;
    let expires = filter.expires();
    let filter = filter.complete_mut()?;
    if let Some(full) = filter.beyond(insert.items.len(), now, limit) {
        let mut found = vec![false; insert.items.len()];
        if unique {
            filter.contains(insert.items, now, &mut found);
        }
        let refused = |is_in| if is_in { Added::Present } else { Added::Full(full) };
        added.extend(found.into_iter().map(refused));
        return Ok(added);
    }
    let advanced = filter.advance(now);
    let before = filter.mark();
    add_each(filter, insert.items, unique, (now, limit), &mut added);
    if created || added.contains(&Added::Yes) {
        if created || expires || !added.iter().any(depends_on_server) {
            keys.changed(1, ADDED);
        } else {
            let first = arguments.len() - insert.items.len();
            let items = (first..).zip(&added).filter(|(_, added)| **added == Added::Yes);
            keys.added_only(1, items.map(|(item, _)| item).collect());
        }
    } else if advanced || filter.mark() != before || expires && has_refused(&added) {
        // Looking for room takes out what has expired, and may split buckets.
        keys.changed(1, "advance");
    }
    Ok(added)
}

/// Adds items, also those after one that found no room, but not after [`MOST_REFUSED`] of these.
fn add_each(
    filter: &mut dyn Cuckoo,
    items: &[&[u8]],
    unique: bool,
    (now, limit): (u64, u64),
    added: &mut Vec<Added>,
) {
    for _ in 0..MOST_REFUSED {
        filter.add(&items[added.len()..], unique, limit, added);
        if added.len() == items.len() {
            return;
        }
    }
    let rest = &items[added.len()..];
    let Some(&refused) = added.last() else { return };
    let mut found = vec![false; rest.len()];
    filter.contains(rest, now, &mut found);
    // Those that are in need no search: they get a copy or a new time.
    let mut has_room = true;
    for (item, is_in) in rest.iter().zip(found) {
        match is_in {
            true if unique => added.push(Added::Present),
            true if has_room => {
                filter.add(slice::from_ref(item), unique, limit, added);
                has_room = !added.last().is_some_and(Added::is_refused);
            }
            _ => added.push(refused),
        }
    }
}

fn has_refused(added: &[Added]) -> bool {
    added.iter().any(Added::is_refused)
}

/// Whether an item was refused that a replica may have room for.
fn depends_on_server(added: &Added) -> bool {
    matches!(added, Added::Full(Full::Limit { .. } | Full::NoMemory))
}
