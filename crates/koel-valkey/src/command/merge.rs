//! `MERGE destination source..`: as if the items of all sources were added to the destination.
//!
//! The false-positive rates of filters that have grown add up.
//!
//! A source that is named twice counts once, and may be the destination. The union is built beside
//! the destination and replaces it at the end, so that a failure changes nothing.
//!
//! **Memory.** In parts, the filters are copied one after the other, each when its turn comes. The
//! library adds one to the union in a table beside it. So there are never more than three filters,
//! the union twice and one copy, and what the library works with (`working`). At once there is no
//! copy.

use std::collections::BTreeSet;

use super::parts::{Host, Made, NewValue, copy};
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::native::Native;
use crate::keys::{Event, Keys, Value};

pub(super) fn merge(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let operands = Operands::of(keys, arguments)?;
    keys.has_room(operands.most_bytes(0))?;
    let (mut union, limit) = (native(keys, operands.first)?.try_clone()?, keys.limit(u64::MAX));
    for source in operands.sources {
        add(&mut union, native(keys, source)?, limit)?;
    }
    put(keys, union)
}

/// The filters of a MERGE, as indexes of the arguments.
struct Operands {
    /// What the union begins with.
    first: usize,
    /// What is added, each name once.
    sources: Vec<usize>,
    first_bytes: u64,
    largest_bytes: u64,
    all_bytes: u64,
}

impl Operands {
    /// A missing destination begins as a copy of the first source.
    fn of(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Self, Error> {
        let mut names = BTreeSet::new();
        let mut sources: Vec<usize> =
            (2..arguments.len()).filter(|&source| names.insert(arguments[source])).collect();
        let exists = !matches!(keys.read(1), Value::Missing);
        let first = if exists { 1 } else { sources.remove(0) };
        let first_bytes = native(keys, first)?.bytes();
        let (mut largest_bytes, mut all_bytes) = (0, first_bytes);
        for &source in &sources {
            let bytes = native(keys, source)?.bytes();
            largest_bytes = bytes.max(largest_bytes);
            all_bytes = bytes.saturating_add(all_bytes);
        }
        Ok(Self { first, sources, first_bytes, largest_bytes, all_bytes })
    }

    /// What the command takes at most, with copies of so many bytes, if the union does not grow.
    fn most_bytes(&self, copy: u64) -> u64 {
        let filters = self.first_bytes.saturating_mul(2).saturating_add(copy);
        filters.saturating_add(working(filters))
    }
}

/// Bytes that the library works with beside filters of so many: the entries of a segment, from two
/// filters.
pub(super) fn working(bytes: u64) -> u64 {
    bytes.saturating_mul(16).min(21 << 20)
}

/// Whether the filters have so many bytes in all.
///
/// # Errors
/// As MERGE.
pub fn is_long(keys: &mut dyn Keys, arguments: &[&[u8]], least: u64) -> Result<bool, Error> {
    Ok(Operands::of(keys, arguments)?.all_bytes >= least)
}

/// Builds the union.
///
/// # Errors
/// As MERGE, and [`Error::Room`] if there is none for the union and a copy.
pub fn work(host: &dyn Host, arguments: &[&[u8]], number: u64) -> Result<Made, Error> {
    let (operands, limit) = host.ask(|keys| {
        let operands = Operands::of(keys, arguments)?;
        keys.has_room(operands.most_bytes(operands.largest_bytes))?;
        Ok((operands, keys.limit(u64::MAX)))
    })?;
    let mut filter = copy(host, operands.first, number)?;
    for &source in &operands.sources {
        add(&mut filter, &copy(host, source, number)?, limit)?;
    }
    Ok(Made::Value(NewValue {
        filter: Box::new(filter),
        follows: operands.first == 1,
        event: Event::Merge,
    }))
}

/// Adds a filter to the union, which may take so many bytes.
fn add(union: &mut Native, source: &Native, limit: u64) -> Result<(), Error> {
    union.merge(source)?;
    let bytes = union.bytes();
    if bytes > limit { Err(Error::Limit { bytes, limit }) } else { Ok(()) }
}

fn put(keys: &mut dyn Keys, union: Native) -> Result<Reply, Error> {
    let (bytes, limit) = (union.bytes(), keys.limit(u64::MAX));
    if bytes > limit {
        return Err(Error::Limit { bytes, limit });
    }
    keys.put(1, union.into());
    keys.changed(1, Event::Merge);
    Ok(Reply::Ok)
}

fn native(keys: &mut dyn Keys, argument: usize) -> Result<&Native, Error> {
    let filter = keys.read(argument).or(Error::NotFound)?;
    filter.complete()?;
    match filter {
        Filter::Native(filter) => Ok(filter),
        Filter::Expiring(_) => Err(Error::MergeWindow),
        _ => Err(Error::MergeCompat),
    }
}
