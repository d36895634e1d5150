//! Exporting files, with every byte checked.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

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
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        #[cfg(unix)]
        File::open(folder).into_iter().for_each(temporary::sweep);
        let named = tempfile::Builder::new().prefix(&temporary::prefix()).tempfile_in(folder);
        let mut sink = BufWriter::with_capacity(1 << 18, named.map_err(ArchiveError::Write)?);
        let length = self.export(name, &mut sink)?;
        finish(sink, path, folder).map_err(ArchiveError::Write)?;
        Ok(length)
    }
}

/// Makes the bytes durable, then the name. Until then only the owner can read the file.
fn finish(sink: BufWriter<NamedTempFile>, path: &Path, folder: &Path) -> io::Result<()> {
    let complete = sink.into_inner()?;
    match fs::metadata(path) {
        Ok(old) => complete.as_file().set_permissions(old.permissions())?,
        Err(_) => temporary::allow_usual_readers(complete.as_file())?,
    }
    complete.as_file().sync_all()?;
    complete.persist(path)?;
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
