//! `ADD key item`, `ADDNX key item` and
//! `INSERT[NX] key [CAPACITY n] [NOCREATE] ITEMS item..`

use super::arguments::{self, Insert};
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Added;
use crate::filter::native::Native;
use crate::keys::{Keys, Value};

pub(super) fn add(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    add_one(keys, arguments, false)
}

pub(super) fn add_absent(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    add_one(keys, arguments, true)
}

pub(super) fn insert(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let added = add_all(keys, &arguments::insert(&arguments[2..])?, false)?;
    Ok(Reply::Added(added.into_iter().map(|added| added == Added::Yes).collect()))
}

pub(super) fn insert_absent(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let added = add_all(keys, &arguments::insert(&arguments[2..])?, true)?;
    let number = |added| match added {
        Added::Yes => 1,
        Added::Present => 0,
        Added::Full(_) => -1,
    };
    Ok(Reply::Array(added.into_iter().map(|added| Reply::Integer(number(added))).collect()))
}

fn add_one(keys: &mut dyn Keys, arguments: &[&[u8]], unique: bool) -> Result<Reply, Error> {
    let insert = Insert { settings: arguments::default(), create: true, items: &arguments[2..] };
    match add_all(keys, &insert, unique)?.first() {
        Some(&Added::Full(full)) => Err(Error::Full(full)),
        answer => Ok(Reply::Bool(answer == Some(&Added::Yes))),
    }
}

/// Adds items to the filter of the key, which is created if it is missing.
fn add_all(keys: &mut dyn Keys, insert: &Insert<'_>, unique: bool) -> Result<Vec<Added>, Error> {
    let limit = keys.limit();
    let mut added = Vec::new();
    added.try_reserve_exact(insert.items.len()).map_err(|_| Error::NoMemory)?;
    let created = matches!(keys.write(1), Value::Missing);
    if created {
        if !insert.create {
            return Err(Error::NotFound);
        }
        keys.put(1, Native::create(insert.settings, limit)?.into());
    }
    let filter = keys.write(1).or(Error::NotFound)?.complete_mut()?;
    filter.add(insert.items, unique, limit, &mut added);
    if created || added.contains(&Added::Yes) {
        keys.changed(1, "add");
    }
    Ok(added)
}
