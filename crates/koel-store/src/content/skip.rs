//! Which unchanged files an import does not read again.
//!
//! The new version of such a file refers to chunks that were stored before. An import relies on
//! them only as far as it knows that they are there:
//!
//! * All lists of the file are read and checked.
//! * Every chunk has a record in the index that is not known to be damaged. The index is asked
//!   without reading: one of 100,000 missing chunks is taken for stored.
//! * A sample of the chunks is read and checked: all chunks of the first [`CHECKED`] bytes, and of
//!   the rest one in [`SAMPLE`], others each time.
//!
//! A file that fails is read from disk, so that its chunks are stored again. If anything fails, the
//! import starts over and checks every chunk that it relies on. So damage that no one knew of goes
//! unnoticed only if no sample met any of it.
//!
//! Cost: two lookups in memory for each chunk, and reads of the lists and the sample.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Archive;
use super::entry::{Content, Time};
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::read::Chunks;

/// Bytes of files of which every chunk is checked.
const CHECKED: u64 = 64 << 20;

/// Of further chunks, one in so many is checked.
const SAMPLE: u64 = 128;

/// What an import skips, and what it found out about that.
#[derive(Debug)]
pub(super) struct Skipping<'a> {
    archive: &'a Archive,
    /// Decides which chunks are in the sample.
    seed: u64,
    checks_all: bool,
    /// Bytes of the files that were skipped.
    length: u64,
    found_damage: bool,
}

impl<'a> Skipping<'a> {
    /// `time` is that of the import: each takes another sample.
    pub(super) fn new(archive: &'a Archive, time: Time) -> Self {
        let seed = time.seconds.cast_unsigned() ^ u64::from(time.nanos) << 32;
        Self { archive, seed, checks_all: false, length: 0, found_damage: false }
    }

    /// Returns whether an import can rely on a stored content.
    pub(super) fn may_skip(&mut self, path: &[u8], content: Content) -> Result<bool, ArchiveError> {
        self.length = self.length.saturating_add(content.length);
        let checks_all = self.checks_all || self.length <= CHECKED;
        let (archive, seed) = (self.archive, self.seed);
        let is_there = |chunks: &Chunks<'_>, hash: &Hash| {
            if checks_all || xxh3_64_with_seed(hash, seed).is_multiple_of(SAMPLE) {
                chunks.read(hash).map(drop)
            } else if archive.may_have_chunk(hash) {
                Ok(())
            } else {
                Err(chunks.missing())
            }
        };
        match Chunks::new(archive, path, content).try_each(is_there) {
            Ok(()) => Ok(true),
            Err(error) if error.is_loss() => {
                self.found_damage = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes damage that the import met elsewhere.
    pub(super) fn note_damage(&mut self) {
        self.found_damage = true;
    }

    /// Returns whether the import has to start over, and checks everything from now on: damage was
    /// found, and not everything was checked that was skipped.
    pub(super) fn starts_over(&mut self) -> bool {
        let starts_over = self.found_damage && !self.checks_all && self.length > CHECKED;
        self.checks_all |= starts_over;
        starts_over
    }
}

impl Archive {
    /// Returns whether a chunk may be stored, without reading.
    fn may_have_chunk(&self, hash: &Hash) -> bool {
        [b'c', b'z'].iter().any(|kind| self.store.may_have(&keys::key(*kind, hash)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::content::Chunking;
    use crate::{Durability, LogOptions, LogStore};
    use tempfile::TempDir;
    use testkit::storage::Random;

    const CHUNKS: usize = 400;

    /// Returns a closed archive with a file of many chunks, and its bytes.
    fn closed() -> (TempDir, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let archive = open(&folder);
        let bytes = Random::new(5).bytes(CHUNKS * 4096);
        archive.import("file", &bytes[..], Chunking::Fixed(4096)).unwrap();
        archive.into_store().close().unwrap();
        (folder, bytes)
    }

    fn open(folder: &TempDir) -> Archive {
        Archive::new(LogStore::open(folder.path()).unwrap())
    }

    /// Opens an archive that has forgotten the damage that it met.
    fn open_anew(folder: &TempDir) -> Archive {
        Archive::new(LogOptions::default().read_only(true).open(folder.path()).unwrap())
    }

    /// Returns whether the file may be skipped by an import that has skipped much already.
    fn may_skip(archive: &Archive, seed: u64) -> bool {
        let content = archive.find("file").unwrap().1.content().unwrap();
        let mut skipping =
            Skipping { seed, length: CHECKED, ..Skipping::new(archive, Time::default()) };
        let may_skip = skipping.may_skip(b"file", content).unwrap();
        assert_eq!(skipping.starts_over(), !may_skip, "damage makes it start over");
        assert!(!skipping.starts_over(), "it starts over once");
        may_skip
    }

    #[test]
    fn a_file_without_one_of_its_chunks_is_never_skipped() {
        let (folder, bytes) = closed();
        let archive = open(&folder);
        assert!((0..100).all(|seed| may_skip(&archive, seed)));
        let key = keys::key(b'c', blake3::hash(&bytes[4096..8192]).as_bytes());
        assert!(archive.store().delete(&key, Durability::None).unwrap());
        assert!((0..100).all(|seed| !may_skip(&archive, seed)));
    }

    #[test]
    fn damage_is_found_by_a_sample_or_was_found_before() {
        let (folder, bytes) = closed();
        let path = folder.path().join("0000000000000001.log");
        let mut log = fs::read(&path).unwrap();
        let part = &bytes[100 * 4096 + 9..][..32];
        let at = log.windows(32).position(|window| window == part).unwrap();
        log[at] ^= 1;
        fs::write(&path, log).unwrap();
        let found = (0..500).filter(|seed| !may_skip(&open_anew(&folder), *seed)).count();
        assert!((1..20).contains(&found), "{found} of 500 samples have one of 128 chunks");
        let learn: [&dyn Fn(&Archive); 4] = [
            &|archive| drop(archive.export("file", std::io::sink())),
            &|archive| drop(archive.verify(|_| ())),
            &|archive| drop(archive.store().verify(|_, _| ())),
            &|archive| assert!(archive.store().keys().any(|key| key.is_err())),
        ];
        for (how, learn) in learn.iter().enumerate() {
            let archive = open_anew(&folder);
            learn(&archive);
            assert!((0..100).all(|seed| !may_skip(&archive, seed)), "{how}");
        }
    }
}
