//! Which kind of store a folder has: the first bytes of the manifest say it.

use std::fmt;
use std::io;
use std::path::Path;

use super::access::read_up_to;
use super::disk::DiskFolder;
use super::file_names::MANIFEST;
use super::files::Folder;
use crate::Error;

/// The first bytes of the manifest of a log store.
pub(crate) const LOG_MAGIC: [u8; 8] = *b"koelman\n";
/// The first bytes of the manifest of an ordered store.
pub(crate) const LSM_MAGIC: [u8; 8] = *b"koellsm\n";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// A [`LogStore`](crate::LogStore).
    Log,
    /// An [`LsmStore`](crate::LsmStore).
    Lsm,
}

impl StoreKind {
    /// Returns the kind of the store in the folder at `path`, or `None` if there is none. Reads 8
    /// bytes and takes no lock.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::{LsmStore, StoreKind};
    ///
    /// assert_eq!(StoreKind::of(folder.path())?, None);
    /// LsmStore::open(folder.path())?.close()?;
    /// assert_eq!(StoreKind::of(folder.path())?, Some(StoreKind::Lsm));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`] if MANIFEST starts like that of no store, and I/O errors.
    pub fn of(path: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let path = path.as_ref();
        match DiskFolder::read_only(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::no_folder(error).at(path)),
            Ok(folder) => Self::of_folder(&folder).map_err(|error| error.at(path)),
        }
    }

    /// Returns the kind of the store in a [`Folder`], as [`of`](Self::of) does.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_folder(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        let Some(file) = super::access::open(folder, MANIFEST)? else { return Ok(None) };
        let mut magic = [0; 8];
        let read = read_up_to(&*file, &mut magic, 0).map_err(Error::io("read", MANIFEST))?;
        match Self::of_bytes(&magic[..read]) {
            Some(kind) => Ok(Some(kind)),
            None => Err(Error::damaged(MANIFEST, 0, "it does not start like a manifest")),
        }
    }

    /// Returns the kind of the store whose manifest starts with these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let kinds = [(LOG_MAGIC, Self::Log), (LSM_MAGIC, Self::Lsm)];
        kinds.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| kind)
    }

    /// # Errors
    /// [`Error::WrongKind`] if the folder has a store of another kind.
    pub(crate) fn expect(self, folder: &dyn Folder) -> Result<(), Error> {
        match Self::of_folder(folder) {
            Ok(Some(found)) if found != self => Err(Error::WrongKind { found }),
            // Whoever reads the manifest reports what is wrong with it.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log store",
            Self::Lsm => "ordered store",
        })
    }
}
