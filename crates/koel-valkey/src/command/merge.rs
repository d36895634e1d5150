//! `MERGE destination source..`: as if the items of all sources were added to the destination.
//!
//! The false-positive rates of filters that have grown add up.
//!
//! A source that is named twice counts once, and may be the destination. The union is built beside
//! the destination and replaces it at the end, so that a failure changes nothing.
//!
//! In parts, the filters are copied one after the other, each when its turn comes, so that there
//! are never more than the union and one copy. Each is watched from then on. If none has changed
//! until the end, the command gives the same union wherever it is run.

use std::collections::BTreeSet;

use super::parts::{Host, Outcome, Work, ask};
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::native::Native;
use crate::keys::{Event, Keys, Value};

pub(super) fn merge(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let operands = Operands::of(keys, arguments)?;
    keys.has_room(operands.first_bytes)?;
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
}

/// Begins a MERGE.
///
/// # Errors
/// As MERGE, and [`Error::Room`] if there is none for the union and a copy.
pub fn begin(
    keys: &mut dyn Keys,
    arguments: &[&[u8]],
    least: u64,
    watch: u64,
) -> Result<Option<Work>, Error> {
    let operands = Operands::of(keys, arguments)?;
    if operands.all_bytes < least {
        return Ok(None);
    }
    keys.has_room(operands.first_bytes.saturating_add(operands.largest_bytes))?;
    let limit = keys.limit(u64::MAX);
    Ok(Some(Box::new(move |host| {
        let union = build(host, &operands, limit, watch);
        Box::new(move |keys| finish(keys, &operands, union?, watch))
    })))
}

fn build(host: &dyn Host, operands: &Operands, limit: u64, watch: u64) -> Result<Native, Error> {
    let mut union = copy(host, operands.first, watch)?;
    for &source in &operands.sources {
        add(&mut union, &copy(host, source, watch)?, limit)?;
    }
    Ok(union)
}

/// A copy of a filter, which is watched from now on.
pub(super) fn copy(host: &dyn Host, argument: usize, watch: u64) -> Result<Native, Error> {
    let copied = ask(host, |keys| match keys.write(argument) {
        Value::Filter(Filter::Native(filter)) => {
            filter.watch(watch);
            filter.try_clone()
        }
        _ => Err(Error::NotFound),
    });
    copied.unwrap_or(Err(Error::NotFound))
}

/// Whether a filter is what it was when it was copied.
pub(super) fn is_watched(keys: &mut dyn Keys, argument: usize, watch: u64) -> bool {
    matches!(keys.read(argument), Value::Filter(Filter::Native(filter)) if filter.is_watched(watch))
}

fn finish(
    keys: &mut dyn Keys,
    operands: &Operands,
    union: Native,
    watch: u64,
) -> Result<Outcome, Error> {
    let existed = operands.first == 1;
    let is_missing = matches!(keys.read(1), Value::Missing);
    if is_missing == existed || existed && !is_watched(keys, 1, watch) {
        return Ok(Outcome::Again);
    }
    let mut all = std::iter::once(&operands.first).chain(&operands.sources);
    let is_same = all.all(|&operand| is_watched(keys, operand, watch));
    let reply = put(keys, union)?;
    Ok(if is_same { Outcome::Done(reply) } else { Outcome::Value(reply) })
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
