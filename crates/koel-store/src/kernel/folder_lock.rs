//! The lock of the folder of a store.

use std::fmt;
use std::io::ErrorKind;

use super::files::Folder;
use crate::Error;
use crate::error::FOLDER;

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
