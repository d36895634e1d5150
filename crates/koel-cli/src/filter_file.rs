//! Filter files, opened two ways: mapped into memory for reading, locked and loaded for editing.
//!
//! Reading ([`FilterFile`]): the file is mapped, its header checked, and a query touches two buckets, so a filter of any size opens at
//! once and costs the memory of the pages it touches. The table is not checked until someone asks (`koel info`).
//! Editing ([`Editing`]): the file is locked against other edits, and against being replaced ([`lock_output`]), loaded and checked entirely; the change is written beside it and
//! renamed over it. Readers are never blocked and never see a half-written file.
//!
//! The only file with `unsafe`, for the memory map.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use koel::{CuckooFilter, FilterView};
use memmap2::Mmap;

use crate::failure::Failure;
use crate::identity::Identity;
use crate::output;

/// The bytes of a filter, with the name to blame.
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
        Self::named(path, bytes)
    }

    /// Reads standard input when the name is `-`; only for a verb that reads no keys from there.
    pub(crate) fn open_or_stdin(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            Self::named(Path::new("standard input"), read_all(io::stdin().lock()))
        } else {
            Self::open(path)
        }
    }

    fn named(path: &Path, bytes: io::Result<Bytes>) -> Result<Self, Failure> {
        let bytes = bytes.map_err(|error| Failure::read(path, error))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// The filter in these bytes; only the header is checked.
    pub(crate) fn view(&self) -> Result<FilterView<'_>, Failure> {
        FilterView::open(self.bytes()).map_err(|error| self.failure(error))
    }

    /// A copy to change; everything is checked.
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
    // SAFETY: the mapped bytes must not change while they are borrowed. koel itself never writes into an existing filter: it renames a
    // new file over it (`output::write_file`), and the map keeps the old one. Another program that writes into or cuts the file while
    // we run can make answers wrong or end this process with SIGBUS; no koel filter is read any other way than through checked or
    // bounds-safe accesses, so nothing worse follows.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Bytes::Mapped(map))
}

fn read_all(mut reader: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(Bytes::Read(bytes))
}

/// A filter loaded for a change; no other koel can edit the file until this is dropped.
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

    /// Replaces the file by the changed filter.
    pub(crate) fn save(self) -> Result<(), Failure> {
        output::write_filter(&self.path, &self.filter)
    }
}

/// Waits for edits of a file that is about to be replaced, and keeps others waiting until the lock is dropped: an edit that ended after it was replaced would put the
/// old one back. Where nothing is to be replaced, or that cannot be read, there is nothing to wait for.
pub(crate) fn lock_output(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    lock(path).ok()
}

/// Waits for other edits of the file. Each edit puts a new file under the name, so whoever waited for the old one starts again.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match file.lock() {
            // A file system without locks: better an edit without one than none.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            other => other?,
        }
        if is_still(path, &file)? {
            return Ok(file);
        }
    }
}

/// Whether the name is still that of the file held. Where the system does not tell files apart, whether there is one.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let [named, held] =
        [fs::metadata(path)?, file.metadata()?].map(|metadata| Identity::in_metadata(&metadata));
    Ok(named == held)
}
