//! Locking a folder, opening its files, and whole reads and writes over [`File`] calls that may
//! transfer only a part.
//!
//! A `File` or a reader may come from the user of the crate, so what it returns is checked.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use super::bytes::usize_of;
use super::files::{File, Folder};
use crate::Error;
use crate::error::FOLDER;

/// Bytes that [`read_whole`] reads at a time.
const STEP: usize = 1 << 20;

/// Opens a file of a store. Returns `None` if there is none.
pub(crate) fn open(folder: &dyn Folder, name: &str) -> Result<Option<Arc<dyn File>>, Error> {
    match folder.open(name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err(Error::damaged(name, 0, "it is not a regular file"))
        }
        Err(error) => Err(Error::io("open", name)(error)),
    }
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).ok_or(ErrorKind::InvalidData)?;
                offset += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads at `offset` until `into` is full or the file ends. Returns the number of bytes read.
pub(crate) fn read_up_to(file: &dyn File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    fill(into, |rest, filled| file.read_at(rest, offset + filled as u64))
}

/// Fills `into` from a reader of the caller.
pub(crate) fn read_exact(source: &mut dyn Read, into: &mut [u8]) -> io::Result<()> {
    let read = fill(into, |rest, _| source.read(rest))?;
    if read == into.len() { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Calls `read` with the rest of `into` and the number of bytes before it, until there is no rest
/// or nothing was read. Returns the number of bytes read.
#[inline]
pub(crate) fn fill(
    into: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match read(&mut into[filled..], filled) {
            Ok(0) => break,
            Ok(read) if read > into.len() - filled => return Err(ErrorKind::InvalidData.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads a whole file of at most `max` bytes.
///
/// `accepts` is called after every MiB, and at the end, with all bytes read so far. Reading stops
/// when it returns false, so a file that is large but wrong, or sparse, takes little memory.
///
/// Returns `None` if the file is longer than `max`, or if `accepts` returned false.
pub(crate) fn read_whole(
    file: &dyn File,
    max: u64,
    mut accepts: impl FnMut(&[u8]) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let len = file.len()?;
    if len > max {
        return Ok(None);
    }
    let (len, mut bytes) = (usize_of(len), Vec::new());
    loop {
        let start = bytes.len();
        let step = STEP.min(len - start);
        bytes.try_reserve(step)?;
        bytes.resize(start + step, 0);
        let read = read_up_to(file, &mut bytes[start..], start as u64)?;
        bytes.truncate(start + read);
        if !accepts(&bytes) {
            return Ok(None);
        }
        if read < step || bytes.len() == len {
            return Ok(Some(bytes));
        }
    }
}

/// Keeps other writers out until it is dropped.
pub(crate) struct FolderLock {
    _lock: Box<dyn Send + Sync>,
}

impl FolderLock {
    /// # Errors
    /// [`Error::Locked`] if another holder has the lock, and I/O errors.
    pub(crate) fn take(folder: &dyn Folder) -> Result<Self, Error> {
        let lock = folder.lock().map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::Locked,
            _ => Error::io("lock", FOLDER)(error),
        })?;
        Ok(Self { _lock: lock })
    }
}

impl fmt::Debug for FolderLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FolderLock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports one byte more than it read or wrote.
    #[derive(Debug)]
    struct Overcounts;

    impl File for Overcounts {
        fn read_at(&self, into: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(into.len() + 1)
        }

        fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<usize> {
            Ok(bytes.len() + 1)
        }

        fn len(&self) -> io::Result<u64> {
            Ok(100)
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_overcounts_is_an_error() {
        let invalid = |error: io::Error| error.kind() == ErrorKind::InvalidData;
        assert!(read_up_to(&Overcounts, &mut [0; 8], 0).is_err_and(invalid));
        assert!(read_whole(&Overcounts, 100, |_| true).is_err_and(invalid));
        assert!(write_all(&Overcounts, &[0; 8], 0).is_err_and(invalid));
    }
}
