//! `EXISTS key item`, `MEXISTS key item..`, `COUNT key item` and `MCOUNT key item..`
//!
//! As in the reference, a key that is missing or of another type is an empty filter.

use super::reply::Reply;
use crate::error::Error;
use crate::filter::Cuckoo;
use crate::keys::{Keys, Value};

pub(super) fn exists(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut found = [false];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        filter.contains(&arguments[2..], now, &mut found);
    }
    Ok(Reply::Bool(found[0]))
}

pub(super) fn exists_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut found = vec![false; items.len()];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        filter.contains(items, now, &mut found);
    }
    Ok(Reply::Bools(found))
}

pub(super) fn count(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut counts = [0];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        filter.count(&arguments[2..], now, &mut counts);
    }
    Ok(Reply::count(counts[0]))
}

pub(super) fn count_many(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let items = &arguments[2..];
    let mut counts = vec![0; items.len()];
    let now = keys.now();
    if let Some(filter) = filter(keys)? {
        filter.count(items, now, &mut counts);
    }
    Ok(Reply::Array(counts.into_iter().map(Reply::count).collect()))
}

fn filter(keys: &mut dyn Keys) -> Result<Option<&dyn Cuckoo>, Error> {
    match keys.read(1) {
        Value::Filter(filter) => filter.complete().map(Some),
        Value::Missing | Value::Foreign => Ok(None),
    }
}
