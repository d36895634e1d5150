//! Files into the archive.

use std::io::Read;

use super::chunks::Chunks;
use super::manifest::{self, Hash, Manifest};
use super::{Archive, ArchiveError, Chunking};
use crate::kernel::record;
use crate::{Durability, Error};

/// What an import came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Bytes of the file.
    pub length: u64,
    /// BLAKE3 of the file.
    pub hash: [u8; 32],
    /// Chunks of the file.
    pub chunks: u64,
    /// Chunks that were not there before, or not as they were written.
    pub new_chunks: u64,
    /// Bytes of those.
    pub new_bytes: u64,
}

impl Archive {
    /// Stores what `source` yields under `name`, in place of the file that has it, durably: once this returns, the file survives a crash, and
    /// until then the old one does. Memory: the buffer of the chunks, and the hashes of the lists (8 KiB for each 4 GiB).
    ///
    /// # Errors
    /// A bad name or chunk size, [`ArchiveError::Read`] of the source, those of the store. The name then stays what it was.
    pub fn import(
        &self,
        name: &str,
        source: impl Read,
        chunking: Chunking,
    ) -> Result<Imported, ArchiveError> {
        if name.is_empty() || name.len() > manifest::LONGEST_NAME {
            return Err(ArchiveError::BadName { bytes: name.len() });
        }
        if !chunking.is_valid() {
            return Err(ArchiveError::BadChunking(chunking));
        }
        let _no_collection = self.chunks_in_use.read();
        let mut import = Import::new(self);
        let mut chunks = Chunks::new(source, chunking);
        while let Some(chunk) = chunks.next().map_err(ArchiveError::Read)? {
            import.chunk(chunk)?;
        }
        import.list()?;
        let imported = import.imported();
        self.name(name, &imported, import.lists)?;
        Ok(imported)
    }

    /// Writes the manifest, and gives a new name its number first. A name whose manifest is damaged gets a new number too: the old one leads to a file with
    /// another number then, and counts for nothing. Where the record of the number is damaged, it is written again.
    fn name(&self, name: &str, imported: &Imported, lists: Vec<Hash>) -> Result<(), ArchiveError> {
        let _alone = self.naming.lock();
        let number = match self.find(name) {
            Ok(Some(manifest)) => self.number_again(name, manifest.number)?,
            Ok(None) | Err(ArchiveError::Store(Error::Damaged { .. })) => self.number(name)?,
            Err(error) => return Err(error),
        };
        let Imported { length, hash, chunks, .. } = *imported;
        let manifest = Manifest { number, length, hash, chunks, lists };
        let key = manifest::name_key(name);
        Ok(self.store.put(&key, &manifest.encode(), Durability::Synced)?)
    }

    /// The number of a name, whose record is written again if it is damaged.
    fn number_again(&self, name: &str, number: u64) -> Result<u64, ArchiveError> {
        if let Err(ArchiveError::Store(Error::Damaged { .. })) = self.name_of(number) {
            let key = manifest::number_key(number);
            self.store.put(&key, name.as_bytes(), Durability::None)?;
        }
        Ok(number)
    }

    /// Gives a name the next number.
    pub(super) fn number(&self, name: &str) -> Result<u64, ArchiveError> {
        let number = self.next_number()?;
        let next = (number + 1).to_le_bytes();
        self.store.put(&manifest::number_key(number), name.as_bytes(), Durability::None)?;
        self.store.put(manifest::NEXT_NUMBER, &next, Durability::None)?;
        Ok(number)
    }
}

/// An import under way.
struct Import<'a> {
    archive: &'a Archive,
    whole: blake3::Hasher,
    length: u64,
    chunks: u64,
    new_chunks: u64,
    new_bytes: u64,
    /// Hashes that are in no list yet.
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

    fn chunk(&mut self, chunk: &[u8]) -> Result<(), ArchiveError> {
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
        if self.hashes.len() == manifest::LIST * 32 { self.list() } else { Ok(()) }
    }

    /// Stores the hashes so far as a list.
    fn list(&mut self) -> Result<(), ArchiveError> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let hash = *blake3::hash(&self.hashes).as_bytes();
        self.store_once(&manifest::list_key(&hash), &self.hashes)?;
        self.lists.push(hash);
        self.hashes.clear();
        Ok(())
    }

    /// Whether the value was new, or not there as it was written.
    fn store_once(&self, key: &[u8], value: &[u8]) -> Result<bool, ArchiveError> {
        let new = !self.is_stored(key, value)?;
        if new {
            self.archive.store.put(key, value, Durability::None)?;
        }
        Ok(new)
    }

    /// Whether the store has this value under its hash. A look at the record checks all of a value of one block, and nothing but the key of a longer one, which is read for that.
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

    fn imported(&self) -> Imported {
        Imported {
            length: self.length,
            hash: *self.whole.finalize().as_bytes(),
            chunks: self.chunks,
            new_chunks: self.new_chunks,
            new_bytes: self.new_bytes,
        }
    }
}
