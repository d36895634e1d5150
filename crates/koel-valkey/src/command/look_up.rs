//! `EXISTS key item`, `MEXISTS key item..`, `COUNT key item` and `MCOUNT key item..`
//!
//! A key that is missing is an empty filter. So is, as in the reference, one of another type;
//! MCOUNT, which the reference does not have, refuses that.

use super::reply::Reply;
use crate::error::Error;
use crate::filter::Cuckoo;
use crate::keys::{Keys, Value};

pub(super) fn exists(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let now = keys.now();
    let found = filter(keys)?.is_some_and(|filter| filter.contains(arguments[2], now));
    Ok(Reply::Bool(found))
}

pub(super) fn exists_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut found = vec![false; items.len()];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        match (items, &mut found[..]) {
            ([item], [found]) => *found = filter.contains(item, now),
            (items, found) => filter.contains_many(items, now, found),
        }
    }
    Ok(Reply::Bools(found))
}

pub(super) fn count(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let now = keys.now();
    Ok(Reply::count(filter(keys)?.map_or(0, |filter| filter.count(arguments[2], now))))
}

pub(super) fn count_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut counts = vec![0; items.len()];
    let now = keys.now();
    match keys.read(1) {
        Value::Filter(filter) => filter.complete()?.count_many(items, now, &mut counts),
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
