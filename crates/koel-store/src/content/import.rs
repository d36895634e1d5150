//! Importing files.

use std::io::Read;

use super::archive::Archive;
use super::chunks::{Chunking, Chunks};
use super::error::ArchiveError;
use super::manifest::{self, Hash, Manifest};
use crate::kernel::record;
use crate::{Durability, Error};

/// What an import did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The length of the file in bytes.
    pub length: u64,
    /// The BLAKE3 hash of the file.
    pub hash: [u8; 32],
    /// The number of chunks of the file.
    pub chunks: u64,
    /// The number of chunks that the store did not have, or had damaged.
    pub new_chunks: u64,
    /// Bytes of those.
    pub new_bytes: u64,
}

impl Archive {
    /// Stores what `source` yields as the file `name`, replacing any file with that name. When this
    /// returns, the new file survives a crash; until then the old one does.
    ///
    /// Memory: the buffer of the chunks, and the hashes of the lists (8 KiB for each 4 GiB).
    ///
    /// # Errors
    /// [`ArchiveError::BadName`], [`ArchiveError::BadChunking`], [`ArchiveError::Read`] from the
    /// source, and those of the store. The old file then stays.
    pub fn import(
        &self,
        name: &str,
        source: impl Read,
        chunking: Chunking,
    ) -> Result<ImportReport, ArchiveError> {
        if name.is_empty() || name.len() > manifest::MAX_NAME {
            return Err(ArchiveError::BadName { bytes: name.len() });
        }
        if !chunking.is_valid() {
            return Err(ArchiveError::BadChunking(chunking));
        }
        let _no_collection = self.chunks_in_use.read();
        let mut import = Import::new(self);
        let mut chunks = Chunks::new(source, chunking);
        while let Some(chunk) = chunks.next().map_err(ArchiveError::Read)? {
            import.add_chunk(chunk)?;
        }
        import.store_list()?;
        let report = import.report();
        self.store_manifest(name, &report, import.lists)?;
        Ok(report)
    }

    /// Writes the manifest, after giving a new name its number.
    ///
    /// A name with a damaged manifest gets a new number too. The old one then leads to a file with
    /// another number and is ignored. A damaged record of a number is written again.
    fn store_manifest(
        &self,
        name: &str,
        report: &ImportReport,
        lists: Vec<Hash>,
    ) -> Result<(), ArchiveError> {
        let _alone = self.naming.lock();
        let number = match self.find(name) {
            Ok(Some(manifest)) => self.check_number(name, manifest.number)?,
            Ok(None) | Err(ArchiveError::Store(Error::Damaged { .. })) => {
                self.assign_number(name)?
            }
            Err(error) => return Err(error),
        };
        let ImportReport { length, hash, chunks, .. } = *report;
        let manifest = Manifest { number, length, hash, chunks, lists };
        let key = manifest::name_key(name);
        Ok(self.store.put(&key, &manifest.encode(), Durability::Synced)?)
    }

    /// Returns the number of a name, after writing its record again if that is damaged.
    fn check_number(&self, name: &str, number: u64) -> Result<u64, ArchiveError> {
        if let Err(ArchiveError::Store(Error::Damaged { .. })) = self.name_of(number) {
            let key = manifest::number_key(number);
            self.store.put(&key, name.as_bytes(), Durability::None)?;
        }
        Ok(number)
    }
}

/// An import in progress.
struct Import<'a> {
    archive: &'a Archive,
    whole: blake3::Hasher,
    length: u64,
    chunks: u64,
    new_chunks: u64,
    new_bytes: u64,
    /// Hashes of chunks that are not in a list yet.
    hashes: Vec<u8>,
    lists: Vec<Hash>,
}

impl<'a> Import<'a> {
    fn new(archive: &'a Archive) -> Self {
        Self {
            archive,
            whole: blake3::Hasher::new(),
            length: 0,
            chunks: 0,
            new_chunks: 0,
            new_bytes: 0,
            hashes: Vec::with_capacity(manifest::LIST * 32),
            lists: Vec::new(),
        }
    }

    fn add_chunk(&mut self, chunk: &[u8]) -> Result<(), ArchiveError> {
        let bytes = chunk.len() as u64;
        self.whole.update(chunk);
        let hash = *blake3::hash(chunk).as_bytes();
        if self.store_once(&manifest::chunk_key(&hash), chunk)? {
            self.new_chunks += 1;
            self.new_bytes += bytes;
        }
        self.length += bytes;
        self.chunks += 1;
        self.hashes.extend(hash);
        if self.hashes.len() == manifest::LIST * 32 { self.store_list() } else { Ok(()) }
    }

    /// Stores the hashes so far as a list.
    fn store_list(&mut self) -> Result<(), ArchiveError> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let hash = *blake3::hash(&self.hashes).as_bytes();
        self.store_once(&manifest::list_key(&hash), &self.hashes)?;
        self.lists.push(hash);
        self.hashes.clear();
        Ok(())
    }

    /// Stores a value if the store does not have it, or has it damaged. Returns whether that was
    /// so.
    fn store_once(&self, key: &[u8], value: &[u8]) -> Result<bool, ArchiveError> {
        let new = !self.is_stored(key, value)?;
        if new {
            self.archive.store.put(key, value, Durability::None)?;
        }
        Ok(new)
    }

    /// Returns whether the store has this value under its hash. Looking up the key checks all of a
    /// value that is not large, but only the key of a large one, so a large one is read.
    fn is_stored(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let store = &self.archive.store;
        let is_stored = if value.len() <= record::BLOCK {
            store.contains(key)
        } else {
            store.get(key).map(|found| found.as_deref() == Some(value))
        };
        match is_stored {
            Err(Error::Damaged { .. }) => Ok(false),
            known => known,
        }
    }

    fn report(&self) -> ImportReport {
        ImportReport {
            length: self.length,
            hash: *self.whole.finalize().as_bytes(),
            chunks: self.chunks,
            new_chunks: self.new_chunks,
            new_bytes: self.new_bytes,
        }
    }
}
