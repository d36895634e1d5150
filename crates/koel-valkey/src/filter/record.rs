//! A filter as a value of an RDB file, or of DUMP and RESTORE.
//!
//! Ours, in encoding [`ENCODING`]: the header as a string, the number of bytes of the body, then
//! the body in strings of up to 1 MiB. While chunks are missing, the body is shorter than the
//! header says.
//!
//! RedisBloom's, in encoding 4: tables, buckets, items, deleted items, bucket size, most evictions
//! and expansion as numbers; then for each table its number of buckets, and its slots as a string.
//!
//! Bytes may be hostile: everything is checked, and no memory is taken for a length that they only
//! name.

use crate::error::Error;
use crate::filter::header::{Header, Origin, Shape, Totals};
use crate::filter::loading::Loading;
use crate::filter::{Filter, Options};

/// The encoding that filters are saved in. Far from RedisBloom's numbers, which may still grow.
pub const ENCODING: i32 = 512;
/// The encoding of RedisBloom that is read.
pub const REFERENCE: i32 = 4;
const PIECE_BYTES: usize = 1 << 20;

/// Where a value is written to.
pub trait Sink {
    /// Writes a number.
    fn number(&mut self, number: u64);
    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}

/// Where a value is read from.
pub trait Source {
    /// The next number. `None` at the end.
    fn number(&mut self) -> Option<u64>;
    /// Passes the next string to `use_it`. `None` at the end.
    fn string<T>(&mut self, use_it: impl FnOnce(&[u8]) -> T) -> Option<T>;
}

/// Writes a filter.
pub fn save(filter: &Filter, sink: &mut impl Sink) {
    sink.string(&filter.header().encode());
    sink.number(filter.body_len() as u64);
    let Ok(()) = filter.chunks(PIECE_BYTES, |piece| {
        sink.string(piece);
        Ok::<(), std::convert::Infallible>(())
    });
}

/// Reads a filter of an encoding, from bytes of this origin.
///
/// # Errors
/// [`Error::Encoding`], [`Error::Header`] if the bytes end too early, and the errors of
/// [`Loading`].
pub fn load(encoding: i32, of: Origin, source: &mut impl Source) -> Result<Filter, Error> {
    match encoding {
        ENCODING => load_ours(of, source),
        REFERENCE => load_reference(source),
        _ => Err(Error::Encoding(encoding)),
    }
}

fn load_ours(of: Origin, source: &mut impl Source) -> Result<Filter, Error> {
    let header = source.string(Header::decode).flatten().ok_or(Error::Header)?;
    let len = source.number().ok_or(Error::Header)?;
    let mut chunks = Loading::begin(header)?;
    let mut loaded = 0;
    while loaded < len {
        let (size, complete) = source
            .string(|piece| (piece.len() as u64, chunks.append(loaded, piece)))
            .ok_or(Error::Header)?;
        loaded += size;
        if let Some(mut check) = complete? {
            return if loaded == len { check.run(of) } else { Err(Error::Chunk) };
        }
    }
    Ok(Filter::Loading(chunks))
}

fn load_reference(source: &mut impl Source) -> Result<Filter, Error> {
    let mut next = || source.number().ok_or(Error::Header);
    let (tables, buckets, items, deleted) = (next()?, next()?, next()?, next()?);
    let mut option = || u16::try_from(next()?).map_err(|_| Error::Create);
    let options =
        Options { bucket_size: option()?, max_iterations: option()?, expansion: option()? };
    let shape = Shape { buckets, tables, options };
    let header = Header::Compat(shape, Totals { items, deleted });
    let mut chunks = Loading::begin(header)?;
    let mut loaded = 0;
    for _ in 0..tables {
        source.number().ok_or(Error::Header)?;
        let (size, complete) = source
            .string(|slots| (slots.len() as u64, chunks.append(loaded, slots)))
            .ok_or(Error::Header)?;
        loaded += size;
        if let Some(mut check) = complete? {
            return check.run(Origin::Anywhere);
        }
    }
    Err(Error::Chunk)
}
