//! `ADD key item`, `ADDNX key item` and
//! `INSERT[NX] key [CAPACITY n] [NOCREATE] ITEMS item..`

use super::arguments::{self, Insert};
use super::create::create;
use super::items::as_keys;
use super::reply::Reply;
use crate::error::{Error, Full};
use crate::filter::{Added, Cuckoo};
use crate::keys::{Event, Keys, Value};

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
    let added = add_many(keys, arguments, false)?;
    Ok(Reply::Added(added.into_iter().map(|added| added == Added::Yes).collect()))
}

pub(super) fn insert_absent(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let added = add_many(keys, arguments, true)?;
    let number = |added| match added {
        Added::Yes => 1,
        Added::Present => 0,
        Added::Full(_) => -1,
    };
    Ok(Reply::Array(added.into_iter().map(|added| Reply::Integer(number(added))).collect()))
}

fn add_one(keys: &mut dyn Keys, arguments: &[&[u8]], unique: bool) -> Result<Reply, Error> {
    let insert = Insert { settings: arguments::default(), create: true, items: &arguments[2..] };
    let mut added = [Added::Present];
    add_all(keys, arguments, &insert, unique, &mut added)?;
    match added {
        [Added::Full(full)] => Err(Error::Full(full)),
        [added] => Ok(Reply::Bool(added == Added::Yes)),
    }
}

fn add_many(keys: &mut dyn Keys, arguments: &[&[u8]], unique: bool) -> Result<Vec<Added>, Error> {
    let (insert, mut added) = (arguments::insert(&arguments[2..])?, Vec::new());
    added.try_reserve_exact(insert.items.len()).map_err(|_| Error::NoMemory)?;
    added.resize(insert.items.len(), Added::Present);
    add_all(keys, arguments, &insert, unique, &mut added)?;
    Ok(added)
}

/// Adds items, the last of the arguments, to the filter of the key, which is created if it is
/// missing. Writes what became of each to `added`.
fn add_all(
    keys: &mut dyn Keys,
    arguments: &[&[u8]],
    insert: &Insert<'_>,
    unique: bool,
    added: &mut [Added],
) -> Result<(), Error> {
    let now = keys.now();
    let created = matches!(keys.write(1), Value::Missing);
    if created {
        if !insert.create {
            return Err(Error::NotFound);
        }
        create(keys, insert.settings)?;
    }
    let bytes = keys.write(1).or(Error::NotFound)?.bytes_at_stake();
    let limit = keys.limit(bytes);
    let filter = keys.write(1).or(Error::NotFound)?;
    let expires = filter.expires();
    let filter = filter.complete_mut()?;
    let form = filter.key_form()?;
    if let Some(full) = filter.beyond(insert.items.len(), now, limit) {
        return as_keys(form, insert.items, |items| {
            for (item, added) in items.iter().zip(added) {
                let is_in = unique && filter.contains(item, now);
                *added = if is_in { Added::Present } else { Added::Full(full) };
            }
        });
    }
    let (advanced, before) = as_keys(form, insert.items, |items| {
        let advanced = filter.advance(now);
        let before = filter.mark();
        add_each(filter, items, unique, (now, limit), added);
        (advanced, before)
    })?;
    if created || added.contains(&Added::Yes) {
        keys.changed(1, Event::Add);
    } else if advanced || filter.mark() != before || expires && added.iter().any(has_searched) {
        keys.changed(1, Event::Advance);
    } else {
        return Ok(());
    }
    if added.iter().all(depends_on_server) {
        keys.refused_all();
    } else if added.iter().any(depends_on_server) {
        let first = arguments.len() - insert.items.len();
        let refused = (first..).zip(&*added).filter(|(_, added)| depends_on_server(added));
        keys.refused(refused.map(|(item, _)| item).collect());
    }
    Ok(())
}

/// Adds items, also those after one that found no room, but not after [`MOST_REFUSED`] of these.
fn add_each(
    filter: &mut dyn Cuckoo,
    items: &[&[u8]],
    unique: bool,
    (now, limit): (u64, u64),
    added: &mut [Added],
) {
    if let ([item], [added]) = (items, &mut *added) {
        *added = filter.add(item, unique, limit);
        return;
    }
    let mut tried = 0;
    for _ in 0..MOST_REFUSED {
        tried += filter.add_many(&items[tried..], unique, limit, &mut added[tried..]);
        if tried == items.len() {
            return;
        }
    }
    let refused = added[tried - 1];
    let (rest, added) = (&items[tried..], &mut added[tried..]);
    let mut found = vec![false; rest.len()];
    filter.contains_many(rest, now, &mut found);
    // Those that are in need no search: they get a copy or a new time.
    let mut has_room = true;
    for ((item, added), is_in) in rest.iter().zip(added).zip(found) {
        *added = match is_in {
            true if unique => Added::Present,
            true if has_room => filter.add(item, unique, limit),
            _ => refused,
        };
        has_room &= !(is_in && added.is_refused());
    }
}

/// Whether an item was refused after a search for room, which takes out what has expired, and may
/// split buckets.
fn has_searched(added: &Added) -> bool {
    added.is_refused() && !depends_on_server(added)
}

/// Whether an item was refused that a replica may have room for. It has changed no byte.
fn depends_on_server(added: &Added) -> bool {
    matches!(added, Added::Full(Full::Limit { .. } | Full::NoMemory))
}
