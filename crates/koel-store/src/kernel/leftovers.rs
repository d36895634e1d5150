//! Files of a store that its manifest does not name: those that a crash left behind.
//!
//! They are removed when the store is opened. But if such a file has a sequence number that no
//! named one has reached, the manifest is an older one: a crash leaves no such file, while a
//! MANIFEST restored alone does.

use super::file_names::NEW_MANIFEST;
use super::files::Folder;
use super::segment::{FIRST_RECORD, Segment};
use crate::Error;
use crate::error::FOLDER;

/// Returns the number in the name of a file of the store, if it is one.
type NumberOf = fn(&str) -> Option<u64>;

/// Lists the files of a folder, once their names are durable: a process that crashed may have left
/// some that are not, and they must be before anything depends on them.
pub(crate) fn names(folder: &dyn Folder, read_only: bool) -> Result<Vec<String>, Error> {
    if !read_only {
        folder.sync().map_err(Error::io("sync", FOLDER))?;
    }
    folder.list().map_err(Error::io("list", FOLDER))
}

/// Checks that a store may be created in a folder without a manifest.
pub(crate) fn check_is_new(
    folder: &dyn Folder,
    number_of: NumberOf,
    read_only: bool,
) -> Result<(), Error> {
    let names = folder.list().map_err(Error::io("list", FOLDER))?;
    if names.iter().any(|name| number_of(name).is_some()) {
        return Err(Error::NoManifest);
    }
    if read_only { Err(Error::NoStore { folder: FOLDER.to_owned() }) } else { Ok(()) }
}

/// Returns the files of a store that are not named.
pub(crate) fn unnamed(
    names: &[String],
    number_of: NumberOf,
    is_named: impl Fn(u64) -> bool,
) -> Vec<String> {
    let is_unnamed = |name: &&String| {
        number_of(name).is_some_and(|number| !is_named(number)) || *name == NEW_MANIFEST
    };
    names.iter().filter(is_unnamed).cloned().collect()
}

/// Returns an error if a file that is not named has a sequence number from `next` on, as `sequence`
/// says: then a later manifest names it. A file that was not finished has none.
pub(crate) fn check_are_older(
    unnamed: &[String],
    next: u64,
    sequence: impl Fn(&str) -> Option<Result<u64, Error>>,
) -> Result<(), Error> {
    for name in unnamed {
        match sequence(name) {
            Some(Ok(sequence)) if sequence >= next => {
                return Err(Error::OldManifest { file: name.clone() });
            }
            None | Some(Ok(_) | Err(Error::Damaged { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the sequence number of the first record of a segment.
pub(crate) fn first_sequence(folder: &dyn Folder, salt: u64, number: u64) -> Result<u64, Error> {
    let segment = Segment::open(folder, salt, number)?;
    segment.record(FIRST_RECORD, &mut Vec::new()).map(|header| header.sequence)
}

/// Removes files.
pub(crate) fn remove(folder: &dyn Folder, names: &[String]) -> Result<(), Error> {
    names.iter().try_for_each(|name| folder.remove(name).map_err(Error::io("remove", name)))
}
