//! `SCANDUMP key iterator` and `LOADCHUNK key iterator data`
//!
//! Iterator 0 asks for the header, which comes with iterator 1. Iterator `n` from 1 on asks for the
//! chunk that begins at byte `n - 1` of the body, which comes with the iterator of the next one.
//! LOADCHUNK gets each chunk with the iterator that came with it, in the same order.

use std::convert::Infallible;

use super::arguments::number;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::header::Header;
use crate::filter::loading::Loading;
use crate::keys::{Keys, Value};

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
    let iterator: i64 = number(arguments[2]).filter(|&i| i != 0).ok_or(Error::Position)?;
    let (limit, chunk) = (keys.limit(), arguments[3]);
    match (iterator, keys.write(1)) {
        (_, Value::Foreign) => return Err(Error::WrongType),
        (1, Value::Filter(_)) => return Err(Error::Exists),
        (1, Value::Missing) => {
            let header = Header::decode(chunk).ok_or(Error::Header)?;
            keys.put(1, Filter::Loading(Loading::begin(header, limit)?));
        }
        (_, Value::Missing) => return Err(Error::NotFound),
        (_, Value::Filter(filter)) => {
            let Filter::Loading(chunks) = filter else { return Err(Error::Chunk) };
            let offset = u64::try_from(iterator)
                .ok()
                .and_then(|next| next.checked_sub(1)?.checked_sub(chunk.len() as u64));
            if let Some(complete) = chunks.append(offset.ok_or(Error::Chunk)?, chunk)? {
                *filter = complete;
            }
        }
    }
    keys.changed(1, "loadchunk");
    Ok(Reply::Ok)
}
