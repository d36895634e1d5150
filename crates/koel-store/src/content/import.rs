//! Importing a stream.

use std::io::Read;

use super::archive::Archive;
use super::chunks::Chunking;
use super::entry::{Entry, Time};
use super::error::ArchiveError;
use super::names;
use super::write::Writer;
use crate::Durability;

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
    /// Stores what `source` yields as a new version of the file `name`. When this returns, the new
    /// version survives a crash.
    ///
    /// Memory: the buffer of the chunks, and one list of hashes for each height (64 KiB for 256
    /// GiB).
    ///
    /// # Errors
    /// [`ArchiveError::BadName`], [`ArchiveError::Overlap`], [`ArchiveError::BadChunking`],
    /// [`ArchiveError::Read`] from the source, and those of the store. There is no new version
    /// then.
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
        self.commit(name, time, &Entry::of_stream(content), None, Durability::Synced)?;
        Ok(ImportReport {
            length: content.length,
            hash: content.hash,
            chunks: writer.chunks,
            new_chunks: writer.new_chunks,
            new_bytes: writer.new_bytes,
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
