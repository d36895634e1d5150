//! Files out of the archive, every byte checked.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::manifest::{self, Manifest};
use super::{Archive, ArchiveError, broken};

impl Archive {
    /// Writes the file of this name to `sink`, and says how many bytes it has. Each chunk is checked before it is written, the whole at the end: on an
    /// error, what `sink` got is the beginning of the file at most. Memory: one chunk and one list.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`]; [`ArchiveError::Broken`] where a part is missing or is not what was imported; [`ArchiveError::Write`] of
    /// the sink; those of the store.
    pub fn export(&self, name: &str, mut sink: impl Write) -> Result<u64, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let manifest = self.manifest(name)?;
        self.each_byte(name, &manifest, |chunk| {
            sink.write_all(chunk).map_err(ArchiveError::Write)
        })?;
        sink.flush().map_err(ArchiveError::Write)?;
        Ok(manifest.length)
    }

    /// Writes the file of this name to `path`, and says how many bytes it has. They go to a temporary file in the same folder, which takes
    /// the place of `path` when all of it is right and on the disk; until then, and on an error, `path` stays as it was.
    ///
    /// # Errors
    /// Those of [`export`](Self::export).
    pub fn export_file(&self, name: &str, path: &Path) -> Result<u64, ArchiveError> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let temporary = create_in(folder).map_err(ArchiveError::Write)?;
        let mut sink = BufWriter::with_capacity(1 << 18, temporary);
        let length = self.export(name, &mut sink)?;
        finish(sink, path, folder).map_err(ArchiveError::Write)?;
        Ok(length)
    }

    /// Calls `see` with each chunk of a file; an error if the whole is not what was imported.
    pub(super) fn each_byte(
        &self,
        name: &str,
        manifest: &Manifest,
        mut see: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut whole = blake3::Hasher::new();
        let (mut length, mut at) = (0, 0_u64);
        self.each_chunk(name, manifest, |hash| {
            let key = manifest::chunk_key(hash);
            let chunk = self.part(name, &key, hash, || format!("chunk {at}"))?;
            at += 1;
            length += chunk.len() as u64;
            whole.update(&chunk);
            see(&chunk)
        })?;
        if length != manifest.length || whole.finalize() != manifest.hash {
            let what = format!("its {length} bytes are not the {} imported ones", manifest.length);
            return Err(broken(name, what));
        }
        Ok(())
    }
}

/// A temporary file with the permissions that any new file gets; `tempfile` alone would make it private.
#[cfg(unix)]
fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;

    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

#[cfg(not(unix))]
fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder)
}

/// Makes the bytes durable, then the name.
fn finish(sink: BufWriter<NamedTempFile>, path: &Path, folder: &Path) -> io::Result<()> {
    let temporary = sink.into_inner()?;
    if let Ok(old) = fs::metadata(path) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(path)?;
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
