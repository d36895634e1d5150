//! `MERGE destination source..`: as if the items of all sources were added to the destination.
//!
//! The union is built beside the destination and replaces it at the end, so that a failure changes
//! nothing. A source may be the destination.

use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::native::Native;
use crate::keys::{Keys, Value};

pub(super) fn merge(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let is_missing = matches!(keys.read(1), Value::Missing);
    // A missing destination begins as a copy of the first source.
    let (first, sources) = if is_missing { (2, 3) } else { (1, 2) };
    let mut union = native(keys, first)?.try_clone()?;
    for source in sources..arguments.len() {
        union.merge(native(keys, source)?)?;
    }
    let (bytes, limit) = (union.bytes(), keys.limit());
    if bytes > limit {
        return Err(Error::Limit { bytes, limit });
    }
    keys.put(1, union.into());
    keys.changed(1, "merge");
    Ok(Reply::Ok)
}

fn native(keys: &mut dyn Keys, argument: usize) -> Result<&Native, Error> {
    let filter = keys.read(argument).or(Error::NotFound)?;
    filter.complete()?;
    if let Filter::Native(filter) = filter { Ok(filter) } else { Err(Error::MergeCompat) }
}
