//! What a folder has: on the disk, and in the last version.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::Dir;

use crate::content::archive::Archive;
use crate::content::entry::{Entry, Kind};
use crate::content::names;
use crate::content::read::Listing;

/// The entries that a folder had in the last version, read in step with those on disk.
pub(super) struct Before<'a> {
    listing: Option<Listing<'a>>,
    next: Option<Entry>,
}

impl<'a> Before<'a> {
    pub(super) fn new(archive: &'a Archive, path: &'a [u8], before: Option<&Entry>) -> Self {
        let content = before.filter(|entry| matches!(entry.kind, Kind::Folder(_)));
        let content = content.and_then(Entry::content);
        Self { listing: content.map(|content| Listing::new(archive, path, content)), next: None }
    }

    /// Returns the entry with this name. To be called with ascending names.
    pub(super) fn take(&mut self, name: &[u8]) -> Option<Entry> {
        while self.next.as_ref().is_none_or(|entry| &entry.name[..] < name) {
            // What is damaged is read from disk again.
            self.next = Some(self.listing.as_mut()?.next().ok().flatten()?);
        }
        self.next.take_if(|entry| entry.name == name)
    }
}

/// Returns the names in a folder, ascending, and the error that kept further ones from being read.
pub(super) fn names_in(folder: BorrowedFd<'_>) -> (Vec<Vec<u8>>, Option<io::Error>) {
    let mut names = Vec::new();
    let mut error = None;
    match Dir::read_from(folder) {
        Err(refused) => error = Some(refused.into()),
        Ok(entries) => {
            for entry in entries {
                match entry {
                    Ok(entry) => names.push(entry.file_name().to_bytes().to_owned()),
                    Err(broken) => error = Some(broken.into()),
                }
            }
        }
    }
    names.retain(|name| names::is_component(name));
    names.sort_unstable();
    (names, error)
}
