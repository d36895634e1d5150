//! Keeps the hashes of keys that can be read only once, until their number is known.
//!
//! A fixed filter needs the number of keys before the first key is inserted, and a pipe tells it
//! only at its end. A filter treats the hash of a key like the key ([`KeyHash`]), so the filter is
//! byte for byte the one that a file of these keys would give.
//!
//! Layout: 8 bytes per key, little-endian, in the order of the keys. The hashes are in memory up to
//! [`MEMORY`], and above it in an unnamed file in `TMPDIR`. The system deletes that file when the
//! process ends, even if it is killed. Cost: one hash and two copies of 8 bytes per key.

use std::io::{self, BufWriter, Read, Seek, Write};

use koel::{KeyHash, KeyHasher};
use tempfile::SpooledTempFile;

use crate::failure::{self, Failure};
use crate::progress::{Progress, Stdout};

/// The bytes of hashes that are kept in memory: those of two million keys.
const MEMORY: usize = 16 << 20;
/// Bytes per write and per read: a whole number of hashes.
const BUFFER: usize = 256 << 10;
pub(crate) const HASH_BYTES: u64 = 8;

/// Hashes in the order in which they came.
#[derive(Debug)]
pub(crate) struct Spool {
    hashes: BufWriter<SpooledTempFile>,
    len: u64,
}

impl Spool {
    pub(crate) fn new() -> Self {
        Self { hashes: BufWriter::with_capacity(BUFFER, SpooledTempFile::new(MEMORY)), len: 0 }
    }

    pub(crate) fn push(&mut self, hashes: &[KeyHash]) -> Result<(), Failure> {
        self.len += hashes.len() as u64;
        let mut bytes = hashes.iter().map(|hash| hash.get().to_le_bytes());
        bytes.try_for_each(|hash| self.hashes.write_all(&hash)).map_err(|error| failure(&error))
    }

    /// Passes every hash to `take`, in groups. May be called again.
    pub(crate) fn each(
        &mut self,
        label: &'static str,
        mut take: impl FnMut(&[KeyHash]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let progress = Progress::start(label, Some(self.len * HASH_BYTES), Stdout::Silent);
        // Writes what is buffered first.
        self.hashes.rewind().map_err(|error| failure(&error))?;
        let mut hashes = progress.meter(self.hashes.get_mut());
        loop {
            let group = read_hashes(&mut hashes).map_err(|error| failure(&error))?;
            if group.is_empty() {
                return Ok(());
            }
            take(&group)?;
        }
    }
}

/// The next hashes of a file; none at its end.
pub(crate) fn read_hashes(file: &mut impl Read) -> io::Result<Vec<KeyHash>> {
    let mut bytes = Vec::with_capacity(BUFFER);
    file.by_ref().take(BUFFER as u64).read_to_end(&mut bytes)?;
    let words = bytes.as_chunks().0.iter();
    Ok(words.map(|&word| KeyHash::new(u64::from_le_bytes(word))).collect())
}

/// The hash of each key.
pub(crate) fn hash_each(hasher: KeyHasher, keys: &[&[u8]]) -> Vec<KeyHash> {
    keys.iter().map(|key| hasher.hash(key)).collect()
}

fn failure(error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot keep the hashes of the keys in a temporary file in {}: {}; set TMPDIR to a folder \
         with 8 free bytes per key, or give --keys or --grow",
        std::env::temp_dir().display(),
        failure::describe(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_come_back_in_order_as_often_as_asked_from_memory_and_from_a_file() {
        let in_memory = (MEMORY as u64) / HASH_BYTES;
        for len in [0, 1, 100_000, in_memory, in_memory + 1, in_memory + 100_000] {
            let mut spool = Spool::new();
            let hashes: Vec<KeyHash> = (0..len).map(|hash| KeyHash::new(!hash)).collect();
            hashes.chunks(1000).try_for_each(|group| spool.push(group)).unwrap();
            for _ in 0..2 {
                let mut next = 0;
                let read = spool.each("reading", |group| {
                    for hash in group {
                        assert_eq!(hash.get(), !next);
                        next += 1;
                    }
                    Ok(())
                });
                read.unwrap();
                assert_eq!(next, len);
            }
            assert_eq!(spool.hashes.get_ref().is_rolled(), len > in_memory);
        }
    }
}
