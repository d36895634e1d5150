//! An archive: files in chunks, each chunk stored once, every byte checked on the way out.
//!
//! A file is cut into [chunks](Chunking); a chunk is stored under its BLAKE3 hash, so equal chunks of all files are one record. A manifest
//! under the file's name lists the chunks and holds the exact length and the BLAKE3 of the whole. [`Archive::export`] checks each chunk
//! against its hash and the whole against the manifest, and [`Archive::export_file`] lets a file appear only when all of it was right.
//!
//! ```text
//! manifest   keys and records        chunks   cutting            error    what can go wrong
//! import     chunks in, then the manifest, durable last          export   chunks out, checked
//! collect    dropping chunks that no manifest names              verify   the same checks, nothing written
//! mend       numbers of names that were lost
//! ```
//!
//! The store keeps writes in order, and that is all the consistency an archive needs: chunks are written before the lists that name them,
//! lists before the manifest, the number of a name before its manifest and removed after it. Whatever prefix survives a crash, a manifest
//! has all its parts, and the rest is garbage that [`Archive::collect`] drops. A collection and imports
//! or exports exclude each other.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use koel_store::LogStore;
//! use koel_store::content::{Archive, Chunking};
//!
//! let archive = Archive::new(LogStore::open(folder.path())?);
//! let text = b"all work and no play ".repeat(100_000);
//! let first = archive.import("novel", &text[..], Chunking::default())?;
//! let again = archive.import("copy", &text[..], Chunking::default())?;
//! assert_eq!((first.length, first.chunks), (2_100_000, 129));
//! assert_eq!(again.new_chunks, 0);
//!
//! let mut out = Vec::new();
//! archive.export("novel", &mut out)?;
//! assert_eq!(out, text);
//! # Ok(())
//! # }
//! ```

mod chunks;
mod collect;
mod error;
mod export;
mod import;
mod manifest;
mod mend;
mod verify;

use std::sync::{Mutex, RwLock};

pub use chunks::Chunking;
pub use collect::{Collected, Collecting};
pub use error::ArchiveError;
pub use import::Imported;
pub use verify::ArchiveVerified;

use crate::{Durability, Error, LogStore};
use manifest::{Hash, Manifest};

/// Files in a [`LogStore`], cut into chunks that are stored once. Several threads can share it.
#[derive(Debug)]
pub struct Archive {
    store: LogStore,
    /// Imports and exports hold it shared, a collection alone: it must not drop a chunk that an import found present or an export still reads.
    chunks_in_use: RwLock<()>,
    /// Held while a name gets its number or loses it.
    naming: Mutex<()>,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// Its BLAKE3.
    pub hash: [u8; 32],
    /// Its chunks, equal ones each counted.
    pub chunks: u64,
}

impl Archive {
    /// The archive in a store, which may be empty and may hold other records: keys of an archive begin with the byte FF.
    #[must_use]
    pub fn new(store: LogStore) -> Self {
        Self { store, chunks_in_use: RwLock::default(), naming: Mutex::default() }
    }

    /// Whether a key is one that an archive uses: all that begin with the byte FF.
    #[must_use]
    pub fn is_reserved(key: &[u8]) -> bool {
        key.first() == Some(&manifest::MARK)
    }

    /// The store below.
    #[must_use]
    pub fn store(&self) -> &LogStore {
        &self.store
    }

    /// Gives the store back.
    #[must_use]
    pub fn into_store(self) -> LogStore {
        self.store
    }

    /// All files, in the order in which their names came. Costs two reads for each, and where the record of the next number is damaged, one of all keys. A file whose records are damaged is an error in its place, and the next ones follow.
    ///
    /// # Errors
    /// Those of the store.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<Entry, ArchiveError>>, ArchiveError> {
        let manifests = self.manifests()?;
        Ok(manifests.map(|found| {
            let (name, Manifest { length, hash, chunks, .. }) = found?;
            Ok(Entry { name, length, hash, chunks })
        }))
    }

    /// The file of this name.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], and those of the store.
    pub fn entry(&self, name: &str) -> Result<Entry, ArchiveError> {
        let Manifest { length, hash, chunks, .. } = self.manifest(name)?;
        Ok(Entry { name: name.to_owned(), length, hash, chunks })
    }

    /// Takes a name out, durably, and says whether it was there. Its chunks stay until [`collect`](Self::collect).
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&self, name: &str) -> Result<bool, ArchiveError> {
        let _alone = self.naming.lock();
        let number = match self.find(name) {
            Ok(None) => return Ok(false),
            Ok(Some(manifest)) => Some(manifest.number),
            // A damaged manifest does not tell its number. That one leads to no file then, and counts for nothing.
            Err(ArchiveError::Store(Error::Damaged { .. })) => None,
            Err(error) => return Err(error),
        };
        // In this order: a name without a number would be a file whose chunks a collection drops.
        self.store.delete(&manifest::name_key(name), Durability::None)?;
        if let Some(number) = number {
            self.store.delete(&manifest::number_key(number), Durability::None)?;
        }
        self.store.sync()?;
        Ok(true)
    }

    fn find(&self, name: &str) -> Result<Option<Manifest>, ArchiveError> {
        let Some(value) = self.store.get(&manifest::name_key(name))? else { return Ok(None) };
        let manifest = Manifest::decode(&value);
        manifest.map(Some).ok_or(ArchiveError::Record { what: "a file" })
    }

    fn manifest(&self, name: &str) -> Result<Manifest, ArchiveError> {
        self.find(name)?.ok_or_else(|| ArchiveError::NoSuchName { name: name.to_owned() })
    }

    /// The number that the next new name gets. Where its record is damaged, the names say it, until a new one writes it again.
    fn next_number(&self) -> Result<u64, ArchiveError> {
        match self.store.get(manifest::NEXT_NUMBER) {
            Err(Error::Damaged { .. }) => self.free_number(),
            found => found?.map_or(Ok(0), |value| manifest::number_of(&value)),
        }
    }

    fn manifests(
        &self,
    ) -> Result<impl Iterator<Item = Result<(String, Manifest), ArchiveError>>, ArchiveError> {
        let numbers = 0..self.next_number()?;
        Ok(numbers.filter_map(|number| self.numbered(number).transpose()))
    }

    /// The file with this number; none where it was removed, or its import did not come to its end.
    fn numbered(&self, number: u64) -> Result<Option<(String, Manifest)>, ArchiveError> {
        let Some(name) = self.name_of(number)? else { return Ok(None) };
        let manifest = self.find(&name)?.filter(|manifest| manifest.number == number);
        Ok(manifest.map(|manifest| (name, manifest)))
    }

    /// The name with this number.
    fn name_of(&self, number: u64) -> Result<Option<String>, ArchiveError> {
        let name = self.store.get(&manifest::number_key(number))?.map(String::from_utf8);
        name.transpose().map_err(|_| ArchiveError::Record { what: "a name" })
    }

    /// Calls `see` with the hash of each chunk of a file, in order. A list that is absent or is not what its hash says ends it.
    fn each_chunk(
        &self,
        name: &str,
        manifest: &Manifest,
        mut see: impl FnMut(&Hash) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut left = manifest.chunks;
        for (at, hash) in manifest.lists.iter().enumerate() {
            let list = self.part(name, &manifest::list_key(hash), hash, || format!("list {at}"))?;
            let (hashes, rest) = list.as_chunks::<32>();
            if !rest.is_empty() || hashes.len() as u64 != left.min(manifest::LIST as u64) {
                return Err(broken(name, format!("list {at} has not the length it should")));
            }
            left -= hashes.len() as u64;
            hashes.iter().try_for_each(&mut see)?;
        }
        Ok(())
    }

    /// A chunk or a list, compared with its hash.
    fn part(
        &self,
        name: &str,
        key: &[u8],
        hash: &Hash,
        what: impl Fn() -> String,
    ) -> Result<Vec<u8>, ArchiveError> {
        match self.store.get(key)? {
            None => Err(broken(name, format!("{} is missing", what()))),
            Some(bytes) if blake3::hash(&bytes) != *hash => {
                Err(broken(name, format!("{} is not what its hash says", what())))
            }
            Some(bytes) => Ok(bytes),
        }
    }
}

fn broken(name: &str, what: String) -> ArchiveError {
    ArchiveError::Broken { name: name.to_owned(), what }
}
