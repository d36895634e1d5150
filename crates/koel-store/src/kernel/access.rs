//! Whole reads and writes over calls that may do a part, the bytes of numbers, and counting.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::files::File;
use super::record::usize_of;

/// Writes all of `bytes` from `offset` on.
pub(crate) fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).ok_or(io::ErrorKind::InvalidData)?;
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads from `offset` on until `into` is full or the file ends: how many bytes.
pub(crate) fn read_up_to(file: &dyn File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The whole file; `None` where it has more than so many bytes, for which no memory is asked.
pub(crate) fn read_whole(file: &dyn File, most: u64) -> io::Result<Option<Vec<u8>>> {
    let len = file.len()?;
    if len > most {
        return Ok(None);
    }
    let mut bytes = vec![0; usize_of(len)];
    let read = read_up_to(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// The little-endian number of 8 bytes at `at`; 0 where there are none.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

/// The little-endian number of 4 bytes at `at`; 0 where there are none.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    part.map_or(0, |part| u32::from_le_bytes(*part))
}

/// Adds to a number that others read, but that only the caller changes now: under a lock, or before anybody else has it. Cheaper than `fetch_add`, of which a put would need several.
#[inline]
pub(crate) fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
