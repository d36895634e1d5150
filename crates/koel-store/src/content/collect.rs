//! Dropping chunks that no manifest names.
//!
//! Which chunks are named is remembered in a cuckoo filter of 1 in 10^6 false positives: a few bytes for each chunk instead of its hash,
//! never a named chunk dropped, and about one chunk in a million kept though nothing names it. The hashes are the chunks' own: a BLAKE3 is
//! as uniform as any hash of it. Cost: the lists of all files and all keys are read once.

use koel::CuckooFilter;

use super::manifest::{self, Hash};
use super::{Archive, ArchiveError};
use crate::{Compacted, Durability, Error};

const FALSE_POSITIVES: f64 = 1e-6;

/// How far a collection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collecting {
    /// It looks for chunks that no file names.
    Looking {
        /// Bytes of the store read so far.
        read: u64,
        /// Bytes of the store.
        all: u64,
    },
    /// It compacts: a record of so many bytes was copied.
    Copied(u64),
}

/// What a collection came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Collected {
    /// Chunks and lists that no file names any more, dropped.
    pub dropped: u64,
    /// What the compaction after it did.
    pub compacted: Compacted,
}

impl Archive {
    /// Drops the chunks that no file names, then compacts the store. Imports and exports wait until it is done. `progress` is told of every key and every copy.
    ///
    /// # Errors
    /// [`ArchiveError::Broken`] where a list is missing or damaged (nothing is dropped then: what it names is not known), and those of the
    /// store. Where another record is damaged, all the rest is dropped and compacted as far as it can be.
    pub fn collect(&self, mut progress: impl FnMut(Collecting)) -> Result<Collected, ArchiveError> {
        let _no_import = self.chunks_in_use.write();
        let named = self.named()?;
        let (dropped, damage) = self.drop_others(&named, &mut progress)?;
        self.store.sync()?;
        let compacted = self.store.compact_and_tell(|bytes| progress(Collecting::Copied(bytes)))?;
        damage.map_or(Ok(Collected { dropped, compacted }), |damage| Err(damage.into()))
    }

    /// Drops every chunk and list that is not among `named`: how many, and the first damage among all records.
    fn drop_others(
        &self,
        named: &CuckooFilter,
        progress: &mut impl FnMut(Collecting),
    ) -> Result<(u64, Option<Error>), Error> {
        let (mut dropped, mut damage) = (0, None);
        // It keeps every segment of its moment, removed or not, so it ends here.
        let mut keys = self.store.keys();
        while let Some(key) = keys.next() {
            let (read, all) = keys.progress();
            progress(Collecting::Looking { read, all });
            match key.and_then(|key| self.drop_unless(named, &key)) {
                Ok(gone) => dropped += u64::from(gone),
                Err(error @ Error::Damaged { .. }) => damage = damage.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Ok((dropped, damage))
    }

    /// Drops the record of a key, if it is a chunk or a list that is not among `named`: whether it was.
    fn drop_unless(&self, named: &CuckooFilter, key: &[u8]) -> Result<bool, Error> {
        let is_garbage =
            manifest::content_of(key).is_some_and(|hash| !named.contains_hash(beginning(hash)));
        Ok(is_garbage && self.store.delete(key, Durability::None)?)
    }

    /// The chunks and lists of all files.
    fn named(&self) -> Result<CuckooFilter, ArchiveError> {
        let mut parts = 0;
        for file in self.manifests()? {
            let (_, manifest) = file?;
            parts += manifest.chunks + manifest.lists.len() as u64;
        }
        let mut named = CuckooFilter::builder(parts.max(1), FALSE_POSITIVES)
            .build()
            .map_err(|_| ArchiveError::Record { what: "the number of chunks" })?;
        for file in self.manifests()? {
            let (name, manifest) = file?;
            manifest.lists.iter().try_for_each(|hash| note(&mut named, hash))?;
            self.each_chunk(&name, &manifest, |hash| note(&mut named, hash))?;
        }
        Ok(named)
    }
}

fn note(named: &mut CuckooFilter, hash: &Hash) -> Result<(), ArchiveError> {
    // It was built for all of them, so it takes them; if it did not, nothing must be dropped.
    let full = |_| ArchiveError::Record { what: "the number of chunks" };
    named.insert_unique_hash(beginning(hash)).map(drop).map_err(full)
}

fn beginning(hash: &Hash) -> u64 {
    hash.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
