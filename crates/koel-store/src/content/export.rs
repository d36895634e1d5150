//! Exporting files, with every byte checked.

use std::io::Write;
use std::path::Path;

use koel::file::{Readers, Replacement, folder_of};

use super::archive::Archive;
use super::entry::{Entry, Kind};
use super::error::ArchiveError;
use super::read::Chunks;
use super::temporary;

impl Archive {
    /// Writes the file with this name to `sink`. Returns its length in bytes.
    ///
    /// Each chunk is checked before it is written, and the whole at the end. After an error `sink`
    /// may have got the start of the file. Memory: one chunk and one list.
    ///
    /// # Errors
    /// * [`ArchiveError::NoSuchName`], [`ArchiveError::IsFolder`].
    /// * [`ArchiveError::Broken`] if a part is missing or is not what was imported.
    /// * [`ArchiveError::Write`] from the sink, and those of the store.
    pub fn export(&self, name: impl AsRef<[u8]>, sink: impl Write) -> Result<u64, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let (_, entry) = self.find(name.as_ref())?;
        self.export_entry(name, &entry, sink)
    }

    /// Writes the bytes of a file, found with this name, to `sink`, as [`export`](Self::export)
    /// does.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_entry(
        &self,
        name: impl AsRef<[u8]>,
        entry: &Entry,
        mut sink: impl Write,
    ) -> Result<u64, ArchiveError> {
        let Kind::File(file) = &entry.kind else {
            return Err(ArchiveError::IsFolder { name: name.as_ref().to_owned() });
        };
        let mut chunks = Chunks::new(self, name.as_ref(), file.content);
        while let Some(chunk) = chunks.next()? {
            sink.write_all(&chunk).map_err(ArchiveError::Write)?;
        }
        sink.flush().map_err(ArchiveError::Write)?;
        Ok(file.content.length)
    }

    /// Writes the file with this name to `path`. Returns its length in bytes.
    ///
    /// The bytes go to a temporary file in the same folder, which replaces `path` after all of them
    /// were checked and are on disk. Until then, and after an error, `path` is not changed.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_file(&self, name: impl AsRef<[u8]>, path: &Path) -> Result<u64, ArchiveError> {
        temporary::sweep(folder_of(path));
        let mut new = Replacement::of(path).map_err(ArchiveError::Write)?;
        let length = self.export(name, &mut new)?;
        new.finish(Readers::Usual).map_err(ArchiveError::Write)?;
        Ok(length)
    }
}
