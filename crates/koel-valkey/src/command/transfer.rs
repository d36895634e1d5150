//! `SCANDUMP key iterator` and `LOADCHUNK key iterator data`
//!
//! Iterator 0 asks for the header, which comes with iterator 1. Iterator `n` from 1 on asks for the
//! chunk that begins at byte `n - 1` of the body, which comes with the iterator of the next one.
//! LOADCHUNK gets each chunk with the iterator that came with it, in the same order. A chunk that
//! is in already may come again.

use std::convert::Infallible;

use super::arguments::number;
use super::parts::{Host, Made};
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::header::{Header, Origin};
use crate::filter::loading::{Check, Loading};
use crate::keys::{Event, Keys, Value};

/// The most bytes of a chunk.
const CHUNK_BYTES: usize = 16 << 20;

pub(super) fn scan_dump(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let iterator: i64 = number(arguments[2]).ok_or(Error::Position)?;
    let iterator = u64::try_from(iterator).map_err(|_| Error::Position)?;
    let filter = keys.read(1).or(Error::NotFound)?;
    let pair = |next: u64, chunk| Reply::Array(vec![Reply::count(next), chunk]);
    let Some(offset) = iterator.checked_sub(1) else {
        return Ok(pair(1, Reply::Bytes(filter.header().encode())));
    };
    let chunk = chunk_at(filter, offset)?;
    if chunk.is_empty() {
        return Ok(pair(0, Reply::Null));
    }
    Ok(pair(iterator + chunk.len() as u64, Reply::Bytes(chunk)))
}

/// The bytes of the body from `offset` on, as many as a chunk has. As in the reference, a chunk
/// ends where a table ends.
fn chunk_at(filter: &Filter, offset: u64) -> Result<Vec<u8>, Error> {
    let (start, mut chunk) = (usize::try_from(offset).unwrap_or(usize::MAX), Vec::new());
    let size = filter.part_end(start).saturating_sub(start).min(CHUNK_BYTES);
    chunk.try_reserve_exact(size).map_err(|_| Error::NoMemory)?;
    let Ok(()) = filter.write_range(start..start.saturating_add(size), |piece| {
        chunk.extend_from_slice(piece);
        Ok::<(), Infallible>(())
    });
    Ok(chunk)
}

/// Calls `emit` with the arguments of the LOADCHUNK commands that make the filter: iterators and
/// chunks.
pub(crate) fn each_chunk(filter: &Filter, mut emit: impl FnMut(u64, &[u8])) {
    let mut next = 1;
    emit(next, &filter.header().encode());
    let Ok(()) = filter.chunks(CHUNK_BYTES, |chunk| {
        next += chunk.len() as u64;
        emit(next, chunk);
        Ok::<(), Infallible>(())
    });
}

pub(super) fn load_chunk(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    match append(keys, arguments)? {
        Appended::Again => return Ok(Reply::Ok),
        Appended::Part => {}
        Appended::Last(mut check) => {
            let complete = check.run(keys.origin())?;
            replace(keys, &check, complete)?;
        }
    }
    keys.changed(1, Event::LoadChunk);
    Ok(Reply::Ok)
}

/// Whether it is the LOADCHUNK of a last chunk of a large filter. It is checked with all others,
/// which takes some seconds per 100 MB.
///
/// # Errors
/// As LOADCHUNK.
pub fn is_long(keys: &mut dyn Keys, arguments: &[&[u8]], least: u64) -> Result<bool, Error> {
    let Value::Filter(Filter::Loading(chunks)) = keys.read(1) else { return Ok(false) };
    Ok(chunks.total() >= least && number(arguments[2]) == Some(chunks.total() + 1))
}

/// Checks the last chunk with all others, and then puts the filter in their place.
///
/// # Errors
/// As LOADCHUNK.
pub fn work(host: &dyn Host, arguments: &[&[u8]], _: u64) -> Result<Made, Error> {
    let check = host.ask(|keys| match is_long(keys, arguments, 0)? {
        true => append(keys, arguments),
        // It was loaded or deleted while this one waited.
        false => Ok(Appended::Part),
    })?;
    let Appended::Last(mut check) = check else {
        return Ok(Made::Rest(Box::new(|keys, arguments| load_chunk(keys, arguments).map(drop))));
    };
    let complete = check.run(Origin::Anywhere)?;
    Ok(Made::Rest(Box::new(move |keys, _| {
        replace(keys, &check, complete)?;
        keys.changed(1, Event::LoadChunk);
        Ok(())
    })))
}

/// What became of a chunk.
enum Appended {
    /// It came before.
    Again,
    /// It is in, and others are missing.
    Part,
    /// It is the last one.
    Last(Check),
}

fn append(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Appended, Error> {
    let iterator: i64 = number(arguments[2]).filter(|&i| i != 0).ok_or(Error::Position)?;
    let chunk = arguments[3];
    match (iterator, keys.write(1)) {
        (_, Value::Foreign) => Err(Error::WrongType),
        (1, Value::Filter(_)) => Err(Error::Exists),
        (1, Value::Missing) => {
            let mut chunks = Loading::begin(Header::decode(chunk).ok_or(Error::Header)?)?;
            keys.admit(chunks.total())?;
            if keys.origin() == Origin::DataSet {
                chunks.trust();
            }
            keys.put(1, Filter::Loading(chunks));
            Ok(Appended::Part)
        }
        (_, Value::Missing) => Err(Error::NotFound),
        (_, Value::Filter(filter)) => {
            let offset = u64::try_from(iterator)
                .ok()
                .and_then(|next| next.checked_sub(1)?.checked_sub(chunk.len() as u64))
                .ok_or(Error::Chunk)?;
            if has(filter, offset, chunk) {
                return Ok(Appended::Again);
            }
            let Filter::Loading(chunks) = filter else { return Err(Error::Chunk) };
            Ok(chunks.append(offset, chunk)?.map_or(Appended::Part, Appended::Last))
        }
    }
}

/// Whether a filter has these bytes: a client that got no answer sends a chunk again.
fn has(filter: &Filter, offset: u64, chunk: &[u8]) -> bool {
    if let Filter::Loading(chunks) = filter {
        return chunks.has(offset, chunk);
    }
    let Ok(start) = usize::try_from(offset) else { return false };
    let end = start.saturating_add(chunk.len());
    if chunk.is_empty() || end > filter.body_len() {
        return false;
    }
    let mut rest = chunk;
    let same = filter.write_range(start..end, |piece| match rest.strip_prefix(piece) {
        Some(after) => {
            rest = after;
            Ok(())
        }
        None => Err(()),
    });
    same.is_ok() && rest.is_empty()
}

/// Puts the filter of a body in the place of the body.
fn replace(keys: &mut dyn Keys, check: &Check, complete: Filter) -> Result<(), Error> {
    match keys.write(1).or(Error::NotFound)? {
        filter @ Filter::Loading(_) if is_of(filter, check) => {
            *filter = complete;
            Ok(())
        }
        _ => Err(Error::Chunk),
    }
}

fn is_of(filter: &Filter, check: &Check) -> bool {
    matches!(filter, Filter::Loading(chunks) if chunks.is_of(check))
}
