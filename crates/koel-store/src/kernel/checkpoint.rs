//! Checkpoints: a consistent copy of a store in another folder, which is a store too.
//!
//! Files that never change are shared by hard links; if the folders cannot, they are copied. Files
//! that may still grow are copied up to an end. The copy was *closed*: every end in its manifest is
//! exact.
//!
//! 1. The store decides which files make up the copy, under its lock, and opens those that are to
//!    be copied. An open file can be read to its end after it was removed.
//! 2. They are copied without any lock, so nothing waits for another disk. Each is synced, and then
//!    the folder.
//! 3. The manifest comes last. A crash before it leaves files without a manifest, which no store
//!    opens; after an error they are removed.
//!
//! The copy goes on with file numbers from a random start. So no file that one of the two stores
//! writes later passes for one of the other.

use std::io::ErrorKind;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::access::{FolderLock, read_up_to, write_all};
use super::bytes::usize_of;
use super::descriptors::with_room;
use super::files::{File, Folder};
use super::manifest::Manifest;
use super::memory;
use super::poison::Poison;
use super::recovery::random;
use super::store_files::LOCK;
use crate::Error;
use crate::error::FOLDER;

/// Bytes that are copied at a time.
const STEP: usize = 1 << 20;

/// A copy in the making.
#[derive(Debug)]
pub(crate) struct Checkpoint<'a> {
    to: &'a (dyn Folder + 'static),
    _lock: FolderLock,
    /// The files that are linked, or being copied.
    made: Vec<String>,
    /// The files that are to be copied.
    left: Vec<Pinned>,
}

/// A file that is to be copied, even if it is removed meanwhile.
#[derive(Debug)]
struct Pinned {
    name: String,
    file: Arc<dyn File>,
    /// Bytes to copy.
    len: u64,
}

impl<'a> Checkpoint<'a> {
    /// Starts a copy in an empty folder.
    pub(crate) fn start(to: &'a (dyn Folder + 'static)) -> Result<Self, Error> {
        let lock = FolderLock::take(to)?;
        let names = with_room(|| to.list()).map_err(Error::io("list", FOLDER))?;
        if names.iter().any(|name| name != LOCK) {
            return Err(Error::NotEmpty { folder: FOLDER.to_owned() });
        }
        Ok(Self { to, _lock: lock, made: Vec::new(), left: Vec::new() })
    }

    /// Links a file that never changes. Returns false if the folders cannot share it.
    pub(crate) fn link(&mut self, from: &dyn Folder, name: &str) -> Result<bool, Error> {
        match from.link(name, self.to) {
            Ok(()) => {
                self.made.push(name.to_owned());
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
            Err(error) => Err(Error::io("link", name)(error)),
        }
    }

    /// Copies the first `len` bytes of a file when the copy is finished.
    pub(crate) fn copy_later(&mut self, name: &str, file: Arc<dyn File>, len: u64) {
        self.left.push(Pinned { name: name.to_owned(), file, len });
    }

    /// Copies what was not linked, and makes all of it a store with this manifest. The numbers of
    /// its next files are far from those of the original.
    pub(crate) fn finish(mut self, mut manifest: Manifest, seed: Option<u64>) -> Result<(), Error> {
        manifest.clean = true;
        manifest.number += distance(seed);
        let mut buffer = Vec::new();
        for file in std::mem::take(&mut self.left) {
            memory::grow_to(&mut buffer, STEP.min(usize_of(file.len)))?;
            self.made.push(file.name.clone());
            file.copy(self.to, &mut buffer)?;
        }
        self.to.sync().map_err(Error::io("sync", FOLDER))?;
        manifest.store(self.to, &Poison::default())?;
        self.made.clear();
        Ok(())
    }
}

/// Without its manifest, the copy is removed: otherwise the folder would not be empty for the next
/// try.
impl Drop for Checkpoint<'_> {
    fn drop(&mut self) {
        self.made.iter().for_each(|name| drop(self.to.remove(name)));
    }
}

/// Returns how far the file numbers of a copy are from those of the original.
fn distance(seed: Option<u64>) -> u64 {
    let drawn = match seed {
        // The same bytes every time.
        Some(seed) => xxh3_64_with_seed(b"checkpoint", seed),
        None => random(),
    };
    // At most 2^49, so that 2^14 copies of copies stay below the limit of all numbers.
    (1 << 32) + (drawn >> 16)
}

impl Pinned {
    /// Copies the file, durably.
    fn copy(&self, to: &dyn Folder, buffer: &mut [u8]) -> Result<(), Error> {
        let Self { name, file: from, len } = self;
        let file = with_room(|| to.create(name)).map_err(Error::io("create", name))?;
        let mut at = 0;
        while at < *len {
            let piece = usize_of(len - at).min(buffer.len());
            let piece = &mut buffer[..piece];
            let read = read_up_to(&**from, piece, at).map_err(Error::io("read", name))?;
            if read < piece.len() {
                return Err(Error::damaged(name, at + read as u64, "the file is cut short"));
            }
            write_all(&*file, piece, at).map_err(Error::io("write", name))?;
            at += piece.len() as u64;
        }
        file.sync().map_err(Error::io("sync", name))
    }
}
