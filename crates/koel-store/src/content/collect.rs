//! Dropping chunks that no version names.
//!
//! A cuckoo filter with a false-positive rate of 1 in 10^6 stores which chunks are named. So a
//! chunk takes a few bytes instead of its hash. No named chunk is dropped, and about one in a
//! million unnamed chunks is kept. The filter uses the start of the BLAKE3 hashes, which are
//! uniform. Cost: the lists of all files and all keys are read once, and a folder that versions
//! share is visited once.

use std::collections::HashSet;

use koel::{CuckooFilter, KeyHash};

use super::Archive;
use super::entry::Kind;
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::read::Chunks;
use crate::{CompactReport, Durability, Error};

const FALSE_POSITIVES: f64 = 1e-6;

/// The error for more chunks than a filter can hold.
const INVALID_COUNT: ArchiveError = ArchiveError::Record { what: "the number of chunks" };

/// The progress of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectProgress {
    /// The keys are searched for chunks that no version names.
    Searching {
        /// Bytes of the store read so far.
        read: u64,
        /// Bytes of the store.
        total: u64,
    },
    /// The store is compacted: a record of this many bytes was copied.
    Copied(u64),
}

/// What a collection did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectReport {
    /// The number of chunks and lists that were dropped.
    pub dropped: u64,
    /// What the compaction after that did.
    pub compacted: CompactReport,
}

impl Archive {
    /// Drops the chunks that no version names, then compacts the store. Imports and exports wait
    /// until that is done. Calls `progress` for every key and every copied record.
    ///
    /// # Errors
    /// * [`ArchiveError::Broken`] if a list or a folder is missing or damaged, and
    ///   [`ArchiveError::Store`] if a version or the number of versions is. Nothing is dropped
    ///   then, since it is not known what it names.
    /// * Those of the store. If another damaged record is still needed, or it is not known whether
    ///   it is, everything else is dropped and compacted first.
    ///
    /// Damage that nothing needs is dropped: dead records, and chunks that no version names if the
    /// key is readable.
    pub fn collect(
        &self,
        mut progress: impl FnMut(CollectProgress),
    ) -> Result<CollectReport, ArchiveError> {
        let _no_import = self.chunks_in_use.write();
        // On a full disk, this makes the room that dropping needs.
        let mut compacted = self.store.remove_dead()?;
        let named = self.named()?;
        self.drop_stale_spare()?;
        let dropped = self.drop_others(&named, &mut progress)?;
        if self.store.has_known_damage() {
            self.heal_copies(&self.numbers()?.all)?;
        }
        self.store.sync()?;
        // The store knows of the damage that was met. What still needs it is an error.
        compacted +=
            self.store.compact_with_progress(|bytes| progress(CollectProgress::Copied(bytes)))?;
        Ok(CollectReport { dropped, compacted })
    }

    /// Drops every chunk and list that is not in `named`, also damaged ones whose key is known.
    /// Returns how many.
    fn drop_others(
        &self,
        named: &CuckooFilter,
        progress: &mut impl FnMut(CollectProgress),
    ) -> Result<u64, Error> {
        let mut dropped = 0;
        // The iterator keeps all its segments, even removed ones, so it ends with this function.
        let mut keys = self.store.keys();
        while let Some(key) = keys.next() {
            let (read, total) = keys.progress();
            progress(CollectProgress::Searching { read, total });
            dropped += self.drop_unless(named, key)?;
        }
        for key in self.store.keys_of_damaged()? {
            dropped += self.drop_unless(named, Ok(key))?;
        }
        Ok(dropped)
    }

    /// Drops the record of a key, if it is a chunk or a list that is not in `named`, or belongs to
    /// such ones. Returns how many chunks and lists it dropped. Damaged records stay.
    fn drop_unless(&self, named: &CuckooFilter, key: Result<Vec<u8>, Error>) -> Result<u64, Error> {
        let is_named = |hash: &Hash| named.contains(&start_of(hash));
        let dropped = key.and_then(|key| {
            let hash = keys::hash_in(&key);
            let is_unused = match hash {
                Some(hash) => !is_named(hash),
                None => self.is_unused_copy(&key, is_named)?,
            };
            let dropped = is_unused && self.store.delete(&key, Durability::None)?;
            Ok(u64::from(dropped && !keys::is_copy(&key)))
        });
        match dropped {
            Err(Error::Damaged { .. }) => Ok(0),
            dropped => dropped,
        }
    }

    /// Returns the chunks and lists of all versions.
    fn named(&self) -> Result<CuckooFilter, ArchiveError> {
        // There are not more parts than keys. If a broken file names more, the filter grows.
        let parts = self.store.stats().keys.max(1);
        let filter = CuckooFilter::builder(parts, FALSE_POSITIVES).grow_from(parts).build();
        let mut named = filter.map_err(|_| INVALID_COUNT)?;
        let numbers = self.numbers()?;
        if let Some(damage) = numbers.damage {
            return Err(damage);
        }
        // By height and root: a folder that several versions share is visited once.
        let mut folders = HashSet::new();
        for number in numbers.all {
            let Some(version) = self.stored_version(number)? else { continue };
            self.walk(&version.name, &version.entry, &mut |path, entry| {
                let Some(content) = entry.content() else { return Ok(false) };
                let is_folder = matches!(entry.kind, Kind::Folder(_));
                if is_folder && !folders.insert((content.height, content.root)) {
                    return Ok(false);
                }
                let chunks = Chunks::new(self, path, content);
                chunks.each_hash(|hash| add(&mut named, hash)).map(|()| true)
            })?;
        }
        Ok(named)
    }
}

fn add(named: &mut CuckooFilter, hash: &Hash) -> Result<(), ArchiveError> {
    // If the filter cannot take a hash, nothing may be dropped.
    named.insert_unique(&start_of(hash)).map(drop).map_err(|_| INVALID_COUNT)
}

fn start_of(hash: &Hash) -> KeyHash {
    KeyHash::new(hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}
