//! Opens filter files: mapped into memory for reading, or locked and loaded for editing.
//!
//! Reading ([`FilterFile`]): the file is mapped and its header checked. A lookup reads two buckets,
//! so a filter of any size opens at once and uses only the pages that it touches. The table is
//! checked only by `koel info`.
//!
//! Editing ([`Editing`]): the file is locked against other edits and against being replaced
//! ([`lock_output`]), then loaded and checked completely. The changed filter is written to a
//! temporary file and renamed over the old one. Readers never wait and never see a partial file.
//!
//! This is the only file of the command with `unsafe`, for the memory map.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use koel::{CuckooFilter, FilterView};
use memmap2::Mmap;

use crate::failure::Failure;
use crate::identity::Identity;
use crate::output;

/// The bytes of a filter, with the path for messages.
#[derive(Debug)]
pub(crate) struct FilterFile {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    /// From a pipe, which cannot be mapped, or an empty file.
    Read(Vec<u8>),
}

impl FilterFile {
    /// Maps a file.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let bytes = File::open(path).and_then(|file| map_or_read(&file));
        Self::from_bytes(path, bytes)
    }

    /// Maps a file, or reads standard input for `-`; for verbs that read no keys from there.
    pub(crate) fn open_or_stdin(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            Self::from_bytes(Path::new("standard input"), read_all(io::stdin().lock()))
        } else {
            Self::open(path)
        }
    }

    fn from_bytes(path: &Path, bytes: io::Result<Bytes>) -> Result<Self, Failure> {
        let bytes = bytes.map_err(|error| Failure::read(path, error))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// The filter in these bytes. Only the header is checked.
    pub(crate) fn view(&self) -> Result<FilterView<'_>, Failure> {
        FilterView::open(self.bytes()).map_err(|error| self.failure(error))
    }

    /// A copy to edit. Everything is checked.
    pub(crate) fn load(&self) -> Result<CuckooFilter, Failure> {
        CuckooFilter::from_bytes(self.bytes()).map_err(|error| self.failure(error))
    }

    pub(crate) fn failure(&self, error: koel::ImageError) -> Failure {
        Failure::Image { path: self.path.clone(), error }
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

fn map_or_read(file: &File) -> io::Result<Bytes> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() || metadata.len() == 0 {
        return read_all(file);
    }
    // SAFETY: the mapped bytes must not change while they are borrowed. koel never writes into an
    // existing filter: it renames a new file over it (`output::write_file`), and the map keeps the
    // old one. Another program that writes into or truncates the file can make answers wrong or end
    // this process with SIGBUS. Nothing worse follows, because every access to the bytes of a
    // filter is bounds-checked, whatever they hold.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Bytes::Mapped(map))
}

fn read_all(mut reader: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(Bytes::Read(bytes))
}

/// A filter loaded for editing. No other koel process can edit the file until this is dropped.
#[derive(Debug)]
pub(crate) struct Editing {
    path: PathBuf,
    pub(crate) filter: CuckooFilter,
    /// Locked until closed.
    _lock: File,
}

impl Editing {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let lock = lock(path).map_err(|error| Failure::read(path, error))?;
        let filter = FilterFile::open(path)?.load()?;
        Ok(Self { path: path.to_owned(), filter, _lock: lock })
    }

    /// Replaces the file with the changed filter.
    pub(crate) fn save(self) -> Result<(), Failure> {
        output::write_filter(&self.path, &self.filter)
    }
}

/// Locks a file that is about to be replaced, after edits in progress have ended.
///
/// An edit that ended after the replacement would put the old filter back. Returns `None` if there
/// is no such file or it cannot be locked.
pub(crate) fn lock_output(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    lock(path).ok()
}

/// Waits for other edits of the file. Each edit renames a new file to this path, so after the wait
/// the path is checked, and the new file locked instead.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match file.lock() {
            // The file system has no locks: edit without one.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            other => other?,
        }
        if is_still(path, &file)? {
            return Ok(file);
        }
    }
}

/// Whether the path still names the open file. On systems without file identities, whether the
/// path exists.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let [named, held] =
        [fs::metadata(path)?, file.metadata()?].map(|metadata| Identity::from_metadata(&metadata));
    Ok(named == held)
}
