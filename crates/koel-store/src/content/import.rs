//! Importing a stream: its chunks, and lists of them, each stored once.

use std::io::Read;

use zstd::bulk::Compressor;

use super::chunks::{self, Chunking, Cutter};
use super::copies::Parts;
use super::entry::{Content, Entry, StoredFolder, Time};
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::{Archive, names};
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
    /// The number of chunks that the store had damaged, and that were stored again.
    pub repaired: u64,
}

impl Archive {
    /// Stores what `source` yields as a new version of the file `name`. When this returns, the new
    /// version survives a crash.
    ///
    /// Memory: the buffer of the chunks, and one list of hashes for each height (64 KiB for 256
    /// GiB).
    ///
    /// # Errors
    /// [`ArchiveError::BadName`], [`ArchiveError::Overlap`], [`ArchiveError::BadChunking`],
    /// [`ArchiveError::Read`] from the source, and those of the store. There is no new version
    /// then, but perhaps after [`Error::InDoubt`].
    pub fn import(
        &self,
        name: impl AsRef<[u8]>,
        source: impl Read,
        chunking: Chunking,
    ) -> Result<ImportReport, ArchiveError> {
        let (name, time) = (name.as_ref(), Time::now());
        check(name, chunking)?;
        let _no_collection = self.chunks_in_use.read();
        let mut writer = Writer::new(self);
        let content = writer.store(source, chunking)?;
        self.commit(
            (name, time, &Entry::of_stream(content)),
            None,
            writer.parts,
            Durability::Synced,
        )?;
        Ok(ImportReport {
            length: content.length,
            hash: content.hash,
            chunks: writer.chunks,
            new_chunks: writer.new_chunks,
            new_bytes: writer.new_bytes,
            repaired: writer.repaired,
        })
    }
}

/// Fails if a name or a chunk size is not allowed.
pub(super) fn check(name: &[u8], chunking: Chunking) -> Result<(), ArchiveError> {
    if !names::is_name(name) {
        return Err(ArchiveError::BadName { name: name.to_owned() });
    }
    if chunking.is_valid() { Ok(()) } else { Err(ArchiveError::BadChunking(chunking)) }
}

/// How the entries of a folder are cut, so that a new file changes few chunks.
const LISTING: Chunking = Chunking::ByContent(8 << 10);

/// Stores contents, and counts their chunks.
pub(super) struct Writer<'a> {
    archive: &'a Archive,
    compressor: Option<Compressor<'static>>,
    pub(super) chunks: u64,
    pub(super) new_chunks: u64,
    pub(super) new_bytes: u64,
    /// Chunks, and those of folders, that were damaged and are stored again.
    pub(super) repaired: u64,
    /// Chunks and lists of folders that need another copy.
    pub(super) parts: Parts,
    /// Whether it stores the entries of a folder now.
    is_listing: bool,
    /// Reused by all contents.
    buffer: Vec<u8>,
}

/// Hashes that are in no list yet, for each height.
type Pending = Vec<Vec<u8>>;

impl<'a> Writer<'a> {
    pub(super) fn new(archive: &'a Archive) -> Self {
        // Without memory for it, chunks are stored as they are.
        let compressor = archive.compression.and_then(|level| Compressor::new(level).ok());
        let (chunks, new_chunks, new_bytes, repaired) = (0, 0, 0, 0);
        let (parts, is_listing, buffer) = (Parts::new(), false, Vec::new());
        Self {
            archive,
            compressor,
            chunks,
            new_chunks,
            new_bytes,
            repaired,
            parts,
            is_listing,
            buffer,
        }
    }

    /// Stores the entries of a folder.
    pub(super) fn store_listing(
        &mut self,
        entries: &[Entry],
    ) -> Result<StoredFolder, ArchiveError> {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut bytes));
        let before = (self.chunks, self.new_chunks, self.new_bytes);
        self.is_listing = true;
        let content = self.store(&bytes[..], LISTING);
        self.is_listing = false;
        // Reports count the chunks of files.
        (self.chunks, self.new_chunks, self.new_bytes) = before;
        let below = entries.iter().map(Entry::count).fold(0, u64::saturating_add);
        Ok(StoredFolder { content: content?, below })
    }

    /// Stores what a source yields.
    pub(super) fn store(
        &mut self,
        source: impl Read,
        chunking: Chunking,
    ) -> Result<Content, ArchiveError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let content = self.store_chunks(&mut Cutter::new(source, chunking, &mut buffer));
        self.buffer = buffer;
        content
    }

    fn store_chunks<R: Read>(
        &mut self,
        cutter: &mut Cutter<'_, R>,
    ) -> Result<Content, ArchiveError> {
        let (mut whole, mut length) = (blake3::Hasher::new(), 0);
        let mut pending = Pending::default();
        while let Some((chunk, is_last)) = cutter.next().map_err(ArchiveError::Read)? {
            let hash = *blake3::hash(chunk).as_bytes();
            self.chunks += 1;
            if self.store_chunk(&hash, chunk)? {
                self.new_chunks += 1;
                self.new_bytes += chunk.len() as u64;
            }
            if is_last && length == 0 {
                // The hash of a single chunk is that of the whole.
                let length = chunk.len() as u64;
                return Ok(Content { length, hash, height: 0, root: hash });
            }
            length += chunk.len() as u64;
            whole.update(chunk);
            self.add(&mut pending, 0, hash)?;
        }
        let hash = *whole.finalize().as_bytes();
        let (height, root) = if length == 0 { (0, hash) } else { self.finish(pending)? };
        Ok(Content { length, hash, height, root })
    }

    /// Adds a hash of this height, and stores the list if it is full.
    fn add(
        &mut self,
        pending: &mut Pending,
        height: usize,
        hash: Hash,
    ) -> Result<(), ArchiveError> {
        if pending.len() == height {
            pending.push(Vec::new());
        }
        pending[height].extend(hash);
        if pending[height].len() < keys::LIST * 32 {
            return Ok(());
        }
        self.store_list(pending, height)
    }

    fn store_list(&mut self, pending: &mut Pending, height: usize) -> Result<(), ArchiveError> {
        let list = std::mem::take(&mut pending[height]);
        let hash = *blake3::hash(&list).as_bytes();
        self.store_hashes(&hash, &list)?;
        self.add(pending, height + 1, hash)
    }

    /// Stores the lists that are not full. Returns the height and the hash of the root.
    fn finish(&mut self, mut pending: Pending) -> Result<(u8, Hash), ArchiveError> {
        let mut height = 0;
        loop {
            let is_top = height + 1 == pending.len();
            match pending[height][..].try_into() {
                Ok(root) if is_top => return Ok((u8::try_from(height).unwrap_or(u8::MAX), root)),
                Err(_) if pending[height].is_empty() => {}
                _ => self.store_list(&mut pending, height)?,
            }
            height += 1;
        }
    }

    /// Stores a chunk, if the store has it neither as it is nor compressed, and plans the copy that
    /// it may need. Returns whether the chunk was stored.
    fn store_chunk(&mut self, hash: &Hash, chunk: &[u8]) -> Result<bool, ArchiveError> {
        let (kind, is_new) = self.store_original(hash, chunk)?;
        if self.is_listing {
            self.plan_copy(kind, hash, is_new, |value| is_chunk(kind, value, chunk))?;
        }
        Ok(is_new)
    }

    /// Stores a chunk. What the store has damaged is replaced. Returns the letter of its key, and
    /// whether it was stored.
    fn store_original(&mut self, hash: &Hash, chunk: &[u8]) -> Result<(u8, bool), ArchiveError> {
        let stored = |kind| self.stored(kind, hash, |value| is_chunk(kind, value, chunk));
        let plain = stored(b'c')?;
        if plain == Stored::Sound {
            return Ok((b'c', false));
        }
        let packed = stored(b'z')?;
        let (mut kind, is_new) = (b'z', packed != Stored::Sound);
        if is_new {
            let value = self.compressor.as_mut().and_then(|it| chunks::pack(it, chunk));
            kind = if value.is_some() { b'z' } else { b'c' };
            let value = value.as_deref().unwrap_or(chunk);
            self.archive.store.put(&keys::key(kind, hash), value, Durability::None)?;
        }
        let damaged = [(b'c', plain), (b'z', packed)].into_iter();
        let damaged = damaged.filter(|(_, stored)| *stored == Stored::Damaged);
        self.repaired += u64::from(damaged.clone().next().is_some());
        for (other, _) in damaged.filter(|(damaged, _)| *damaged != kind) {
            self.archive.store.delete(&keys::key(other, hash), Durability::None)?;
        }
        Ok((kind, is_new))
    }

    /// Stores a list, if the store does not have it, or has it damaged, and plans its copy if it
    /// needs one.
    fn store_hashes(&mut self, hash: &Hash, list: &[u8]) -> Result<(), ArchiveError> {
        let stored = self.stored(b'l', hash, |other| other == list)?;
        self.repaired += u64::from(stored == Stored::Damaged);
        let is_new = stored != Stored::Sound;
        if is_new {
            self.archive.store.put(&keys::key(b'l', hash), list, Durability::None)?;
        }
        if self.is_listing {
            self.plan_copy(b'l', hash, is_new, |other| other == list)?;
        }
        Ok(())
    }

    /// Plans a copy of what was stored or found, unless it has one, which was written apart from
    /// it.
    fn plan_copy(
        &mut self,
        kind: u8,
        hash: &Hash,
        is_new: bool,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Result<(), ArchiveError> {
        let copy = self.stored(kind.to_ascii_uppercase(), hash, is_it)?;
        self.repaired += u64::from(copy == Stored::Damaged);
        if is_new || copy != Stored::Sound {
            self.parts.insert((kind, *hash));
        }
        Ok(())
    }

    /// Returns what the store has of a kind of record, whose value `is_it` recognizes.
    fn stored(
        &self,
        kind: u8,
        hash: &Hash,
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Result<Stored, Error> {
        match self.archive.store.get(&keys::key(kind, hash)) {
            Err(Error::Damaged { .. }) => Ok(Stored::Damaged),
            Err(error) => Err(error),
            Ok(None) => Ok(Stored::Missing),
            Ok(Some(value)) if is_it(&value) => Ok(Stored::Sound),
            Ok(Some(_)) => Ok(Stored::Damaged),
        }
    }
}

/// What the store has of a part of a content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Sound,
    /// The record is damaged, or its value is another one.
    Damaged,
    Missing,
}

/// Returns whether a value is a chunk, which is compressed in this kind of record or not.
fn is_chunk(kind: u8, value: &[u8], chunk: &[u8]) -> bool {
    if kind == b'z' { chunks::unpack(value).is_some_and(|it| it == chunk) } else { value == chunk }
}
