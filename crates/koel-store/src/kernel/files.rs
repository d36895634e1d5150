//! The file layer: a store reads and writes only through a [`Folder`] and its [`File`]s.
//!
//! A store is one flat folder, so names are plain file names. There are three implementations: the
//! file system, and two in `testkit`, namely an in-memory folder that simulates power failures and
//! a wrapper whose n-th call fails. A store relies on what POSIX promises and on nothing else:
//!
//! * Bytes are durable once [`File::sync`] has returned; a created, renamed or removed name is
//!   durable once [`Folder::sync`] has returned.
//! * [`Folder::rename`] is atomic: after a crash the target is the old file or the new one.
//! * A call that fails may have taken effect in part. After a failed sync the bytes before it may
//!   be lost.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A folder of files.
pub trait Folder: Any + Debug + Send + Sync {
    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file, [`io::ErrorKind::InvalidInput`] if it
    /// is not a regular one: a symbolic link, for example, is not followed.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Creates an empty file.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the file exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Renames a file, replacing any file that has the new name.
    ///
    /// # Errors
    /// I/O errors.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file from the folder. Handles that are open can still read it.
    ///
    /// # Errors
    /// I/O errors.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file the same name in another folder too. The file has two names then, and its bytes
    /// are stored once.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the folders cannot share a file: then it has to be copied.
    /// [`io::ErrorKind::AlreadyExists`] if the other folder has the name.
    fn link(&self, _name: &str, _to: &(dyn Folder + 'static)) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the names of all files, in any order.
    ///
    /// # Errors
    /// I/O errors.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all creations, links, renames and removals so far durable.
    ///
    /// # Errors
    /// I/O errors.
    fn sync(&self) -> io::Result<()>;

    /// Locks the folder until the guard is dropped or the process ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another holder has the lock.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;
}

/// An open file. Each call names its offset, so threads can share the file.
#[expect(clippy::len_without_is_empty, reason = "no caller needs to know if a file is empty")]
pub trait File: Debug + Send + Sync {
    /// Reads up to `into.len()` bytes at `offset`. Returns the number of bytes read, 0 at the end.
    ///
    /// # Errors
    /// I/O errors.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` at `offset`. Returns the number of bytes written.
    ///
    /// # Errors
    /// I/O errors.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// I/O errors.
    fn len(&self) -> io::Result<u64>;

    /// Returns the first offset from `offset` on that may have other bytes than zeros, or `None` if
    /// there is none before the end of the file: the holes of a sparse file need not be read.
    ///
    /// # Errors
    /// I/O errors.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// Truncates the file to `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// I/O errors.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length durable.
    ///
    /// # Errors
    /// I/O errors.
    fn sync(&self) -> io::Result<()>;
}
