//! Replacing the manifest in one step.
//!
//! The new one is written under another name, synced and renamed, and then the folder is synced. So
//! a crash leaves the old one or the new one.

use std::io::ErrorKind;

use super::access::write_all;
use super::file_names::{MANIFEST, NEW_MANIFEST};
use super::files::Folder;
use super::poison::Poison;
use crate::Error;
use crate::error::FOLDER;

/// Makes `bytes` the manifest of the folder, durably. No other file is left after an error. Unless
/// that poisons, the manifest is the one that it was; otherwise it may be either.
pub(crate) fn replace_manifest(
    folder: &dyn Folder,
    bytes: &[u8],
    poison: &Poison,
) -> Result<(), Error> {
    match folder.remove(NEW_MANIFEST) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove", NEW_MANIFEST)(error));
        }
        _ => {}
    }
    let renamed = write(folder, bytes).and_then(|()| {
        let renamed = folder.rename(NEW_MANIFEST, MANIFEST);
        renamed.map_err(Error::io("rename", NEW_MANIFEST)).map_err(|error| poison.set(error))
    });
    if renamed.is_err() {
        drop(folder.remove(NEW_MANIFEST));
    }
    renamed?;
    folder.sync().map_err(Error::io("sync", FOLDER)).map_err(|error| poison.set(error))
}

fn write(folder: &dyn Folder, bytes: &[u8]) -> Result<(), Error> {
    let file = folder.create(NEW_MANIFEST).map_err(Error::io("create", NEW_MANIFEST))?;
    write_all(&*file, bytes, 0).map_err(Error::io("write", NEW_MANIFEST))?;
    file.sync().map_err(Error::io("sync", NEW_MANIFEST))
}
