//! `MERGE destination source..`: as if the items of all sources were added to the destination.
//!
//! The false-positive rates of filters that have grown add up.
//!
//! The union is built beside the destination and replaces it at the end, so that a failure changes
//! nothing. A source may be the destination.
//!
//! A server may build the union of large filters on a thread: [`begin`] copies the filters,
//! [`Merging::run`] needs nothing else, and [`finish`] puts the union in its place, unless the
//! destination has changed in the meantime. Then the command has to be run as a whole.

use std::collections::BTreeMap;

use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::native::Native;
use crate::keys::{Keys, Value};

pub(super) fn merge(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let (first, sources) = operands(keys);
    let (mut union, limit) = (native(keys, first)?.try_clone()?, keys.limit());
    for source in sources..arguments.len() {
        add(&mut union, native(keys, source)?, limit)?;
    }
    put(keys, union)
}

/// Copies of the filters of a MERGE.
#[derive(Debug)]
pub struct Merging {
    union: Native,
    /// Each source once.
    copies: Vec<Native>,
    /// The copy of each source, in the order of the arguments.
    sources: Vec<usize>,
    limit: u64,
    destination: Watched,
}

/// What the destination was when the filters were copied.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    existed: bool,
    watch: u64,
}

/// Copies the filters of a MERGE with these arguments, to merge them elsewhere. `watch` is a number
/// above 0 that no other merge has. `None` if they have less than `least` bytes.
///
/// # Errors
/// As MERGE.
pub fn begin(
    keys: &mut dyn Keys,
    arguments: &[&[u8]],
    least: u64,
    watch: u64,
) -> Result<Option<Merging>, Error> {
    let (first, start) = operands(keys);
    let mut bytes = 0_u64;
    for operand in std::iter::once(first).chain(start..arguments.len()) {
        bytes = bytes.saturating_add(native(keys, operand)?.bytes());
    }
    if bytes < least {
        return Ok(None);
    }
    let union = native(keys, first)?.try_clone()?;
    let (mut copies, mut sources, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (source, name) in arguments.iter().enumerate().skip(start) {
        let copy = *known.entry(name).or_insert(copies.len());
        if copy == copies.len() {
            copies.push(native(keys, source)?.try_clone()?);
        }
        sources.push(copy);
    }
    let existed = if let Value::Filter(Filter::Native(filter)) = keys.write(1) {
        filter.watch(watch);
        true
    } else {
        false
    };
    let (limit, destination) = (keys.limit(), Watched { existed, watch });
    Ok(Some(Merging { union, copies, sources, limit, destination }))
}

impl Merging {
    /// Bytes of the copies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.copies.iter().fold(self.union.bytes(), |sum, copy| sum.saturating_add(copy.bytes()))
    }

    /// What [`finish`] has to know.
    #[must_use]
    pub fn destination(&self) -> Watched {
        self.destination
    }

    /// The union.
    ///
    /// # Errors
    /// As MERGE.
    pub fn run(self) -> Result<Native, Error> {
        let Self { mut union, copies, sources, limit, .. } = self;
        sources.into_iter().try_for_each(|source| add(&mut union, &copies[source], limit))?;
        Ok(union)
    }
}

/// Replaces the destination by the union. `None`, and nothing changed, if the destination is not
/// what it was.
///
/// # Errors
/// [`Error::Limit`].
pub fn finish(
    keys: &mut dyn Keys,
    union: Native,
    destination: Watched,
) -> Result<Option<Reply>, Error> {
    let is_unchanged = match keys.read(1) {
        Value::Missing => !destination.existed,
        Value::Filter(Filter::Native(filter)) => filter.is_watched(destination.watch),
        _ => false,
    };
    if is_unchanged { put(keys, union).map(Some) } else { Ok(None) }
}

/// The argument to begin with, and the first of those to add. A missing destination begins as a
/// copy of the first source.
fn operands(keys: &mut dyn Keys) -> (usize, usize) {
    if matches!(keys.read(1), Value::Missing) { (2, 3) } else { (1, 2) }
}

/// Adds a filter to the union, which may take so many bytes.
fn add(union: &mut Native, source: &Native, limit: u64) -> Result<(), Error> {
    union.merge(source)?;
    check(union, limit)
}

fn check(union: &Native, limit: u64) -> Result<(), Error> {
    let bytes = union.bytes();
    if bytes > limit { Err(Error::Limit { bytes, limit }) } else { Ok(()) }
}

fn put(keys: &mut dyn Keys, union: Native) -> Result<Reply, Error> {
    check(&union, keys.limit())?;
    keys.put(1, union.into());
    keys.changed(1, "merge");
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
