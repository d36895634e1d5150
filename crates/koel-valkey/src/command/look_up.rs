//! `EXISTS key item`, `MEXISTS key item..`, `COUNT key item` and `MCOUNT key item..`
//!
//! A key that is missing is an empty filter. So is, as in the reference, one of another type;
//! MCOUNT, which the reference does not have, refuses that.

use super::items::as_keys;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Cuckoo;
use crate::keys::{Keys, Value};

pub(super) fn exists(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let now = keys.now();
    let Some(filter) = filter(keys)? else { return Ok(Reply::Bool(false)) };
    let found = as_keys(filter.key_form()?, &arguments[2..3], |key| filter.contains(key[0], now))?;
    Ok(Reply::Bool(found))
}

pub(super) fn exists_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut found = vec![false; items.len()];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        as_keys(filter.key_form()?, items, |keys| match (keys, &mut found[..]) {
            ([key], [found]) => *found = filter.contains(key, now),
            (keys, found) => filter.contains_many(keys, now, found),
        })?;
    }
    Ok(Reply::Bools(found))
}

pub(super) fn count(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let now = keys.now();
    let Some(filter) = filter(keys)? else { return Ok(Reply::count(0)) };
    let count = as_keys(filter.key_form()?, &arguments[2..3], |key| filter.count(key[0], now))?;
    Ok(Reply::count(count))
}

pub(super) fn count_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut counts = vec![0; items.len()];
    let now = keys.now();
    match keys.read(1) {
        Value::Filter(filter) => {
            let filter = filter.complete()?;
            let form = filter.key_form()?;
            as_keys(form, items, |keys| filter.count_many(keys, now, &mut counts))?;
        }
        Value::Foreign => return Err(Error::WrongType),
        Value::Missing => {}
    }
    Ok(Reply::Array(counts.into_iter().map(Reply::count).collect()))
}

fn filter(keys: &mut dyn Keys) -> Result<Option<&dyn Cuckoo>, Error> {
    match keys.read(1) {
        Value::Filter(filter) => filter.complete().map(Some),
        Value::Missing | Value::Foreign => Ok(None),
    }
}
