//! The public type of an archive, and reading a file's manifest and parts.

use std::sync::{Mutex, RwLock};

use super::error::ArchiveError;
use super::manifest::{self, Hash, Manifest};
use crate::LogStore;

/// Files in a [`LogStore`], cut into chunks that are stored once. Threads can share it.
#[derive(Debug)]
pub struct Archive {
    pub(super) store: LogStore,
    /// Imports and exports read-lock it, a collection write-locks it: it must not drop a chunk that
    /// an import found present or that an export still reads.
    pub(super) chunks_in_use: RwLock<()>,
    /// Held while a name gets or loses its number.
    pub(super) naming: Mutex<()>,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// The name.
    pub name: String,
    /// The length in bytes.
    pub length: u64,
    /// The BLAKE3 hash.
    pub hash: [u8; 32],
    /// The number of chunks; equal chunks are counted each time.
    pub chunks: u64,
}

impl Archive {
    /// Returns the archive in a store. The store may be empty, and may have other records: the keys
    /// of an archive start with the byte FF.
    #[must_use]
    pub fn new(store: LogStore) -> Self {
        Self { store, chunks_in_use: RwLock::default(), naming: Mutex::default() }
    }

    /// Returns whether a key is reserved for archives: it starts with the byte FF.
    #[must_use]
    pub fn is_reserved(key: &[u8]) -> bool {
        key.first() == Some(&manifest::MARK)
    }

    /// Returns the store of the archive.
    #[must_use]
    pub fn store(&self) -> &LogStore {
        &self.store
    }

    /// Turns the archive into its store.
    #[must_use]
    pub fn into_store(self) -> LogStore {
        self.store
    }

    /// Returns all files, in the order in which their names were first imported.
    ///
    /// Takes two reads for each file, and a pass over all keys if the record of the next number is
    /// damaged. A file with a damaged record yields an error, and the iterator goes on after it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<FileInfo, ArchiveError>>, ArchiveError> {
        Ok(self.manifests()?.map(|found| found.map(|(name, manifest)| info(name, &manifest))))
    }

    /// Returns the file with this name.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], and those of the store.
    pub fn entry(&self, name: &str) -> Result<FileInfo, ArchiveError> {
        Ok(info(name.to_owned(), &self.manifest(name)?))
    }

    /// Returns the manifest of a file, if there is one.
    pub(super) fn find(&self, name: &str) -> Result<Option<Manifest>, ArchiveError> {
        let Some(value) = self.store.get(&manifest::name_key(name))? else { return Ok(None) };
        let manifest = Manifest::decode(&value);
        manifest.map(Some).ok_or(ArchiveError::Record { what: "a file" })
    }

    pub(super) fn manifest(&self, name: &str) -> Result<Manifest, ArchiveError> {
        self.find(name)?.ok_or_else(|| ArchiveError::NoSuchName { name: name.to_owned() })
    }

    /// Calls `visit` with the hash of each chunk of a file, in order. Fails at a list that is
    /// missing or does not match its hash.
    pub(super) fn each_chunk(
        &self,
        name: &str,
        manifest: &Manifest,
        mut visit: impl FnMut(&Hash) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut left = manifest.chunks;
        for (at, hash) in manifest.lists.iter().enumerate() {
            let list = self.part(name, &manifest::list_key(hash), hash, || format!("list {at}"))?;
            let (hashes, rest) = list.as_chunks::<32>();
            if !rest.is_empty() || hashes.len() as u64 != left.min(manifest::LIST as u64) {
                return Err(broken(name, format!("list {at} has the wrong length")));
            }
            left -= hashes.len() as u64;
            hashes.iter().try_for_each(&mut visit)?;
        }
        Ok(())
    }

    /// Calls `visit` with the bytes of each chunk of a file. Fails if the whole is not what was
    /// imported.
    pub(super) fn each_byte(
        &self,
        name: &str,
        manifest: &Manifest,
        mut visit: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut whole = blake3::Hasher::new();
        let (mut length, mut at) = (0, 0_u64);
        self.each_chunk(name, manifest, |hash| {
            let key = manifest::chunk_key(hash);
            let chunk = self.part(name, &key, hash, || format!("chunk {at}"))?;
            at += 1;
            length += chunk.len() as u64;
            whole.update(&chunk);
            visit(&chunk)
        })?;
        if length != manifest.length || whole.finalize() != manifest.hash {
            let what = format!("its {length} bytes are not the {} imported ones", manifest.length);
            return Err(broken(name, what));
        }
        Ok(())
    }

    /// Returns a chunk or a list, after comparing it with its hash.
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
                Err(broken(name, format!("{} does not match its hash", what())))
            }
            Some(bytes) => Ok(bytes),
        }
    }
}

fn info(name: String, manifest: &Manifest) -> FileInfo {
    let Manifest { length, hash, chunks, .. } = *manifest;
    FileInfo { name, length, hash, chunks }
}

fn broken(name: &str, what: String) -> ArchiveError {
    ArchiveError::Broken { name: name.to_owned(), what }
}
