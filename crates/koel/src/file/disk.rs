//! Saving to paths and writers, and loading from paths and readers.
//!
//! * **A save is all or nothing.** A new file replaces the old one (`replace.rs`).
//! * **A forged header takes no memory.** A load checks the header first. From a reader it then
//!   takes at most twice the memory of the bytes that have come, or 1 MiB. A file on a disk says
//!   its own length, which must be the header's.
//!
//! One generic function does each; a macro gives them to each type as methods.

extern crate std;

use std::format;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::string::String;

use thiserror::Error;

use super::FileImage;
use super::replace::{Readers, Replacement, folder_of, sync_folder};
use crate::error::ImageError;
use crate::image::{HEADER_BYTES, Header};
use crate::mem::buffer::Buffer;
use crate::state::store::Store;
use crate::{CountingFilter, CuckooFilter, ExpiringFilter, Maplet, PieceError};

/// Memory for a part of an image before any byte of it has been read.
const FIRST_STEP: usize = 1 << 20;
/// The longest chain of symbolic links that is followed.
const MAX_LINKS: usize = 40;

/// A filter or maplet that could not be saved or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system could not read or write.
    #[error("{}{error}", prefix(path))]
    Io {
        /// The file; `None` for a reader or a writer.
        path: Option<PathBuf>,
        /// The error of the system.
        error: io::Error,
    },
    /// The bytes failed a check: loading verifies every one. Or the system has no memory for them.
    #[error("{}{error}", prefix(path))]
    Image {
        /// The file; `None` for a reader.
        path: Option<PathBuf>,
        /// What is wrong with its bytes.
        error: ImageError,
    },
    /// The pieces are not those of a filter.
    #[error(transparent)]
    Piece(#[from] PieceError),
    /// The file was replaced, but its folder could not be synced.
    #[error(
        "{} was replaced, but its folder could not be synced ({error}), so a crash may bring the \
         old file back; check the disk",
        path.display()
    )]
    Unsynced {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// The path before a message.
fn prefix(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()))
}

impl FileError {
    /// No memory for the image of a file.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn no_memory(path: &Path) -> Self {
        Self::Image { path: Some(PathBuf::from(path)), error: ImageError::NoMemory }
    }

    /// The same error, of the file at `path`.
    fn at(self, path: &Path) -> Self {
        let path = Some(PathBuf::from(path));
        match self {
            Self::Io { path: None, error } => Self::Io { path, error },
            Self::Image { path: None, error } => Self::Image { path, error },
            named => named,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io { path: None, error }
    }
}

impl From<ImageError> for FileError {
    fn from(error: ImageError) -> Self {
        Self::Image { path: None, error }
    }
}

/// Gives the methods for files to a type and its views.
macro_rules! saved_and_loaded {
    ($type:ident) => {
        /// Files. Need the feature `std`.
        impl<S: Store> $type<S> {
            /// Saves to a file: writes a new file beside `path`, syncs it and renames it. So a
            /// crash leaves either the old file or the new one. If the process is killed, it may
            /// leave a `.koel-*` file, which is safe to delete.
            ///
            /// An existing file keeps its permissions, and its owner and group where the system
            /// allows that. A new one can be read by its owner only; on systems other than Unix it
            /// gets the permissions of any new file. What is not a regular file, such as a pipe, is
            /// written directly.
            ///
            /// # Errors
            /// [`FileError::Io`], and then the file at `path` is as it was; or
            /// [`FileError::Unsynced`], and then it is the new one. The folder is not synced if
            /// this process may not read it.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
                let path = path.as_ref();
                save(path, |file| self.save_to(file)).map_err(|error| error.at(path))
            }

            /// Writes the file image to `writer`, and flushes it.
            ///
            /// # Errors
            /// [`FileError::Io`], the first error of `writer`.
            pub fn save_to(&self, writer: impl std::io::Write) -> Result<(), FileError> {
                let mut writer = BufWriter::new(writer);
                self.write_to(|part| writer.write_all(part))?;
                Ok(writer.flush()?)
            }
        }

        /// Files. Need the feature `std`.
        impl $type {
            /// Loads a file, and checks it in full.
            ///
            /// # Errors
            /// [`FileError::Io`] where the file cannot be read, [`FileError::Image`] where it is
            /// not sound or the system has no memory for it.
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, FileError> {
                load(path.as_ref()).map_err(|error| error.at(path.as_ref()))
            }

            /// Reads a file image from `reader`, and checks it in full. Reads no byte beyond the
            /// image, so that others may follow. Wrap a reader that is slow for small reads in a
            /// `BufReader`.
            ///
            /// # Errors
            /// [`FileError::Io`] where `reader` fails, [`FileError::Image`] where the bytes are not
            /// sound or the system has no memory for them.
            pub fn load_from(reader: impl std::io::Read) -> Result<Self, FileError> {
                read_image(reader, None)
            }
        }
    };
}

saved_and_loaded!(CuckooFilter);
saved_and_loaded!(Maplet);
saved_and_loaded!(CountingFilter);
saved_and_loaded!(ExpiringFilter);

/// Replaces the file at `path` by what `write` writes, or leaves it as it is.
pub(super) fn save<R, E: From<FileError>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<R, E>,
) -> Result<R, E> {
    let failed = |error: io::Error| E::from(FileError::from(error));
    if fs::metadata(path).is_ok_and(|old| !old.is_file()) {
        return write(&mut OpenOptions::new().append(true).open(path).map_err(failed)?);
    }
    let target = end_of_links(path);
    let mut new = Replacement::of(&target).map_err(failed)?;
    let written = write(new.file())?;
    new.rename(Readers::Kept).map_err(failed)?;
    let unsynced = |error| FileError::Unsynced { path: PathBuf::from(path), error };
    sync_folder(folder_of(&target)).map_err(|error| unsynced(error).into()).map(|()| written)
}

/// The path at the end of symbolic links, which stay. There may be no file there yet.
fn end_of_links(path: &Path) -> PathBuf {
    let mut end = PathBuf::from(path);
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("")).join(next);
    }
    end
}

fn load<T: FileImage>(path: &Path) -> Result<T, FileError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // A pipe has no length.
    read_image(file, metadata.is_file().then_some(metadata.len()))
}

/// Reads an image. `size` is how many bytes there are, where that is known.
fn read_image<T: FileImage>(reader: impl Read, size: Option<u64>) -> Result<T, FileError> {
    let mut source = Source { reader, read: 0 };
    let mut bytes = [0; HEADER_BYTES];
    let filled = source.fill(&mut bytes)?;
    let header = Header::decode_as(T::KIND, &bytes[..filled])?;
    let known = size.is_some();
    if let Some(size) = size.filter(|&size| size != header.file_bytes()) {
        return Err(header.wrong_length(size).into());
    }
    let (table, trailer) = header.lengths().ok_or(ImageError::NoMemory)?;
    let mut part = |len: usize, grows: bool| {
        let step = if known { len } else { FIRST_STEP };
        let part = source.part(len, step, grows)?;
        part.ok_or_else(|| FileError::from(header.wrong_length(source.read)))
    };
    let table = part(table, header.growable)?;
    let trailer = part(trailer, false)?;
    Ok(T::of_parts(&header, table, trailer.as_ref())?)
}

/// A reader, and how much it has given.
struct Source<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Source<R> {
    /// Reads bytes until `bytes` is full or no more come. Returns how many.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.read += filled as u64;
        Ok(filled)
    }

    /// Reads `len` bytes into memory that has `step` bytes at first, and then doubles. `None` where
    /// fewer come.
    fn part(&mut self, len: usize, step: usize, grows: bool) -> Result<Option<Buffer>, FileError> {
        let mut size = len.min(step);
        let mut part = Buffer::zeroed(size, grows).ok_or(ImageError::NoMemory)?;
        let mut start = 0;
        loop {
            let rest = &mut part.as_mut()[start..];
            if self.fill(rest)? < size - start {
                return Ok(None);
            }
            if size == len {
                return Ok(Some(part));
            }
            start = size;
            size = len.min(2 * size);
            if !part.grow(size) {
                return Err(ImageError::NoMemory.into());
            }
        }
    }
}
