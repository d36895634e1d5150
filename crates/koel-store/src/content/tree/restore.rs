//! Restoring entries on disk.
//!
//! This file walks the entries; restore_leaf.rs writes files and links. One sync at the end covers
//! all files.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs;

use super::place::Place;
use super::problem::Problem;
use crate::content::archive::Archive;
use crate::content::entry::{Content, Entry, Kind};
use crate::content::error::ArchiveError;
use crate::content::find::check_depth;
use crate::content::names;
use crate::content::read::Listing;

/// How entries are restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    owners: bool,
    skipped: Option<PathBuf>,
}

impl RestoreOptions {
    /// Sets whether files get their owners, and files with set-user-ID or set-group-ID keep these
    /// bits. Only the superuser can give files away.
    #[must_use]
    pub fn owners(mut self, owners: bool) -> Self {
        self.owners = owners;
        self
    }

    /// Restores nothing into this folder. For the folder of the store.
    #[must_use]
    pub fn skip(mut self, folder: impl Into<PathBuf>) -> Self {
        self.skipped = Some(folder.into());
        self
    }
}

/// Where an entry is restored.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way to name a place")]
pub enum Target<'a> {
    /// The entry gets this path.
    Path(&'a Path),
    /// The entry gets its name below this folder.
    Below(&'a Path),
}

/// Whether an entry is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "callers return one of these")]
pub enum Selection {
    /// It is restored. The entries in a folder are asked for, too.
    Take,
    /// It is not restored, but a folder with an entry that is, is created for it.
    Search,
    /// It is not restored, and no entry in it is.
    Skip,
}

/// What a restoration did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Files that were restored, hard links included.
    pub files: u64,
    /// Folders that were restored.
    pub folders: u64,
    /// Symbolic links that were restored.
    pub links: u64,
    /// Bytes of the files.
    pub length: u64,
    /// What was not restored, or not as it was.
    pub problems: Vec<Problem>,
}

/// A restored file that has several names.
#[derive(Clone)]
pub(super) struct Linked {
    pub(super) content: Content,
    /// The path of its first name from the top place.
    pub(super) path: Vec<u8>,
    /// The device and the inode.
    pub(super) identity: (u64, u64),
}

/// A restoration in progress.
pub(super) struct Restore<'a> {
    pub(super) archive: &'a Archive,
    pub(super) owners: bool,
    select: &'a mut dyn FnMut(&[u8], &Entry) -> Selection,
    pub(super) progress: &'a mut dyn FnMut(u64),
    /// Restored files that have several names, by number.
    pub(super) linked: HashMap<u64, Linked>,
    /// The place that the target names.
    pub(super) top: &'a Place<'a>,
    /// Bytes of a path before the part that is below the top place.
    pub(super) top_length: usize,
    pub(super) report: RestoreReport,
}

impl Archive {
    /// Writes an entry, found with this name, and all below it to the disk, with modes and times.
    /// Asks `select` with the name of each entry whether it is restored. Calls `progress` with the
    /// bytes as they are written.
    ///
    /// Nothing is written outside the target, whatever the archive holds: names lead only down, and
    /// no symbolic link is followed. A file appears when all its bytes are checked. What cannot be
    /// restored is reported, and the rest goes on. When this returns, everything is on disk.
    ///
    /// # Errors
    /// [`ArchiveError::Write`] if the target cannot be created or opened, or the disk is full, and
    /// those of the store but damage.
    pub fn restore(
        &self,
        name: impl AsRef<[u8]>,
        entry: &Entry,
        target: Target<'_>,
        options: &RestoreOptions,
        select: &mut dyn FnMut(&[u8], &Entry) -> Selection,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RestoreReport, ArchiveError> {
        let name = name.as_ref();
        let _no_collection = self.chunks_in_use.read();
        let is_folder = matches!(entry.kind, Kind::Folder(_));
        let folder = match target {
            Target::Path(path) if !is_folder => {
                check_folder(&parent(path).join("."))?;
                parent(path)
            }
            Target::Path(folder) | Target::Below(folder) => {
                check_folder(folder)?;
                folder
            }
        };
        let top = Place::given(folder, options.skipped.as_deref());
        let mut restore = Restore {
            archive: self,
            owners: options.owners,
            select,
            progress,
            linked: HashMap::new(),
            top: &top,
            top_length: 0,
            report: RestoreReport::default(),
        };
        match target {
            Target::Below(_) => {
                let components: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
                restore.descend(&top, &components, name, entry)?;
            }
            Target::Path(_) if is_folder => {
                restore.top_length = name.len() + 1;
                restore.folder(&top, name, entry, 0)?;
            }
            Target::Path(path) => restore.single(path, name, entry)?,
        }
        let report = restore.report;
        sync(&top)?;
        Ok(report)
    }
}

/// Fails if a path is neither a folder nor the name of a new one.
fn check_folder(path: &Path) -> Result<(), ArchiveError> {
    let found = std::fs::metadata(path);
    let error = match found {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent(path).is_dir() => {
            return Ok(());
        }
        Err(error) => error,
    };
    Err(ArchiveError::Write(error))
}

/// Returns the folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Makes everything durable that was written below a place.
fn sync(top: &Place<'_>) -> Result<(), ArchiveError> {
    #[cfg(target_os = "linux")]
    if let Some(folder) = top.opened() {
        fs::syncfs(folder).map_err(|error| ArchiveError::Write(error.into()))?;
    }
    #[cfg(not(target_os = "linux"))]
    if top.opened().is_some() {
        fs::sync();
    }
    Ok(())
}

impl Restore<'_> {
    /// Restores a file or a link at a path that the user gave.
    fn single(&mut self, path: &Path, name: &[u8], entry: &Entry) -> Result<(), ArchiveError> {
        let invalid = || ArchiveError::Write(io::ErrorKind::InvalidInput.into());
        let file = path.file_name().ok_or_else(invalid)?.as_encoded_bytes();
        if (self.select)(name, entry) == Selection::Take {
            self.leaf(self.top, file, name, entry)?;
        }
        Ok(())
    }

    /// Restores an entry below the places of its name.
    fn descend(
        &mut self,
        place: &Place<'_>,
        components: &[&[u8]],
        path: &[u8],
        entry: &Entry,
    ) -> Result<(), ArchiveError> {
        match components {
            [] => Ok(()),
            [name] => self.entry(place, name, path, entry, 0),
            [folder, rest @ ..] => self.descend(&Place::inside(place, folder), rest, path, entry),
        }
    }

    fn entry(
        &mut self,
        place: &Place<'_>,
        name: &[u8],
        path: &[u8],
        entry: &Entry,
        depth: usize,
    ) -> Result<(), ArchiveError> {
        if matches!(entry.kind, Kind::Folder(_)) {
            return self.folder(&Place::inside(place, name), path, entry, depth);
        }
        if (self.select)(path, entry) == Selection::Take {
            self.leaf(place, name, path, entry)?;
        }
        Ok(())
    }

    /// Restores a folder, which is this place, and what is in it.
    fn folder(
        &mut self,
        place: &Place<'_>,
        path: &[u8],
        entry: &Entry,
        depth: usize,
    ) -> Result<(), ArchiveError> {
        let Some(content) = entry.content() else { return Ok(()) };
        match (self.select)(path, entry) {
            Selection::Skip => return Ok(()),
            Selection::Search => {}
            Selection::Take => {
                if let Err(error) = place.open() {
                    return self.note(path, Err(ArchiveError::Write(error)));
                }
            }
        }
        let inside = self.listing(place, path, content, depth);
        self.note(path, inside)?;
        if place.opened().is_some() {
            self.report.folders += 1;
        }
        let finished = entry.attributes.as_ref().map_or(Ok(()), |it| place.finish(it, self.owners));
        self.note(path, finished.map_err(ArchiveError::Write))
    }

    fn listing(
        &mut self,
        place: &Place<'_>,
        path: &[u8],
        content: Content,
        depth: usize,
    ) -> Result<(), ArchiveError> {
        check_depth(path, depth)?;
        let mut listing = Listing::new(self.archive, path, content);
        while let Some(entry) = listing.next()? {
            let path = names::join(path, &entry.name);
            self.entry(place, &entry.name, &path, &entry, depth + 1)?;
        }
        Ok(())
    }

    /// Turns what concerns one file into a problem of the report.
    pub(super) fn note(
        &mut self,
        path: &[u8],
        done: Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let what = match done {
            Ok(()) => return Ok(()),
            Err(ArchiveError::Broken { what, .. }) => what,
            Err(ArchiveError::Write(error)) if !ends_a_restoration(&error) => {
                format!("it cannot be restored: {error}")
            }
            Err(error) if error.is_damage() => error.to_string(),
            Err(error) => return Err(error),
        };
        self.report.problems.push(Problem { name: path.to_owned(), what });
        Ok(())
    }
}

/// Returns whether no further file can be written either.
fn ends_a_restoration(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}
