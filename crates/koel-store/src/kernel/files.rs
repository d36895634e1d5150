//! The file layer: every byte that a store reads or writes goes through a [`Folder`] and its [`File`]s.
//!
//! A store lives in one flat folder, so names are plain file names. There are three implementations: the real file system, and in `testkit` a
//! memory that can crash (what was not synced may be lost, sector by sector, and so may names) and a wrapper whose n-th call
//! fails. What a store may rely on is what POSIX promises, and no more:
//!
//! * bytes are durable once [`File::sync`] has returned, a name (created, renamed or removed) once [`Folder::sync`] has;
//! * [`Folder::rename`] is atomic: after a crash the target is the old file or the new one;
//! * a call that fails may have happened in part; after a failed sync nothing is known of the bytes before it.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// A folder of files.
pub trait Folder: Debug + Send + Sync {
    /// Opens a file that exists, for reading and writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Creates an empty file.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where there is one.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name, in place of the file that has it.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file out of the folder. Who has it open goes on reading it.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files, in any order.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes all creations, renames and removals so far durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;

    /// Locks the folder until the guard is dropped or the process ends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] where another holds the lock.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;
}

/// An open file. Positions are given with each call, so that threads can share it.
#[expect(clippy::len_without_is_empty, reason = "nothing asks whether a file is empty")]
pub trait File: Debug + Send + Sync {
    /// Reads up to `into.len()` bytes from `offset` on; 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` from `offset` on, and says how many.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Bytes in the file.
    ///
    /// # Errors
    /// Those of the system.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file off, or adds zeros, to make it `len` bytes long.
    ///
    /// # Errors
    /// Those of the system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes all bytes and the length durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync(&self) -> io::Result<()>;
}
