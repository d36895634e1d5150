//! Restoring entries on disk.
//!
//! One sync at the end covers all files.
//!
//! A file is written under a temporary name, checked, given its attributes, and renamed. So it
//! replaces a file or a link of its name, and is never written through a link.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use koel::file::folder_of;
use rustix::fs::{self, AtFlags, Mode, OFlags};

use super::Problem;
use super::place::{self, Place, Status, open_folder};
use crate::content::entry::{Attributes, Content, Entry, Kind, StoredFile, StoredFolder};
use crate::content::error::ArchiveError;
use crate::content::read::{Chunks, Listing, check_depth};
use crate::content::{Archive, names, temporary};

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
    /// Files, folders and links that have another owner or group than the imported ones, because
    /// [`RestoreOptions::owners`] was not set.
    pub other_owners: u64,
    /// Files, folders and links that are missing: the entries of their folders cannot be read. The
    /// folders are among the problems.
    pub missing: u64,
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
                check_folder(&folder_of(path).join("."))?;
                folder_of(path)
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
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder_of(path).is_dir() => {
            return Ok(());
        }
        Err(error) => error,
    };
    Err(ArchiveError::Write(error))
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
        let Kind::Folder(folder) = entry.kind else { return Ok(()) };
        match (self.select)(path, entry) {
            Selection::Skip => return Ok(()),
            Selection::Search => {}
            Selection::Take => {
                if let Err(error) = place.open() {
                    return self.note(path, Err(ArchiveError::Write(error)));
                }
            }
        }
        let inside = self.listing(place, path, folder, depth);
        self.note(path, inside)?;
        if place.opened().is_some() {
            self.report.folders += 1;
        }
        let finished = entry.attributes.as_ref().map_or(Ok(()), |it| {
            self.count_owner(it, place.new_status()?);
            place.finish(it, self.owners)
        });
        self.note(path, finished.map_err(ArchiveError::Write))
    }

    fn listing(
        &mut self,
        place: &Place<'_>,
        path: &[u8],
        folder: StoredFolder,
        depth: usize,
    ) -> Result<(), ArchiveError> {
        let mut missing = folder.below;
        let restored = check_depth(path, depth).and_then(|()| {
            let mut listing = Listing::new(self.archive, path, folder.content);
            while let Some(entry) = listing.next()? {
                missing = missing.saturating_sub(entry.count());
                let path = names::join(path, &entry.name);
                self.entry(place, &entry.name, &path, &entry, depth + 1)?;
            }
            Ok(())
        });
        restored.map_err(|error| {
            if error.is_loss() {
                self.report.missing = self.report.missing.saturating_add(missing);
            }
            error.with_missing(path, missing)
        })
    }

    /// Counts what keeps another owner or group than it had. `status` is that of what was restored.
    fn count_owner(&mut self, attributes: &Attributes, status: Option<Status>) {
        let Some(Status { attributes: restored, .. }) = status else { return };
        let is_other = (restored.uid, restored.gid) != (attributes.uid, attributes.gid);
        self.report.other_owners += u64::from(is_other && !self.owners);
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

/// The bytes of a block of a file system. Shorter holes save nothing.
const HOLE: usize = 4096;

/// Where a file or a link goes, and what it gets.
struct Leaf<'a> {
    folder: BorrowedFd<'a>,
    name: &'a [u8],
    /// Its name in the archive.
    path: &'a [u8],
    attributes: Option<&'a Attributes>,
}

impl Restore<'_> {
    /// Restores a file or a link.
    pub(super) fn leaf(
        &mut self,
        place: &Place<'_>,
        name: &[u8],
        path: &[u8],
        entry: &Entry,
    ) -> Result<(), ArchiveError> {
        let attributes = entry.attributes.as_ref();
        let restored = place.open().map_err(ArchiveError::Write).and_then(|folder| {
            let leaf = Leaf { folder, name, path, attributes };
            match &entry.kind {
                Kind::Link(target) => self.link(&leaf, target),
                Kind::File(file) => self.file(&leaf, file),
                Kind::Folder(_) => Ok(()),
            }
        });
        self.note(path, restored)
    }

    fn link(&mut self, leaf: &Leaf<'_>, target: &[u8]) -> Result<(), ArchiveError> {
        let &Leaf { folder, name, path, attributes } = leaf;
        let make = |temporary: &[u8]| fs::symlinkat(target, folder, temporary);
        let ((), temporary) = temporary::make(make).map_err(ArchiveError::Write)?;
        let owners = self.owners;
        let applied = attributes.map_or(Ok(()), |it| {
            self.count_owner(it, Some(Status::at(folder, &temporary)?));
            place::apply_to_link(folder, &temporary, it, owners)
        });
        self.note(path, applied.map_err(ArchiveError::Write))?;
        rename(folder, &temporary, name)?;
        self.report.links += 1;
        Ok(())
    }

    fn file(&mut self, leaf: &Leaf<'_>, file: &StoredFile) -> Result<(), ArchiveError> {
        let path = leaf.path;
        if !self.link_to_restored(leaf, file) {
            let identity = self.write(leaf, file)?;
            if file.link_number > 0 {
                let path = path.get(self.top_length..).unwrap_or_default().to_owned();
                let linked = Linked { content: file.content, path, identity };
                self.linked.insert(file.link_number, linked);
            }
        }
        self.report.files += 1;
        self.report.length += file.content.length;
        if file.changed_while_read {
            let what = "it changed while it was imported; its bytes may be of several moments";
            self.report.problems.push(Problem::new(path, what));
        }
        if !self.owners && leaf.attributes.is_some_and(|it| it.mode & place::SET_ID != 0) {
            let what = "its set-user-ID or set-group-ID bit is restored only with its owner";
            self.report.problems.push(Problem::new(path, what));
        }
        Ok(())
    }

    /// Makes the file another name of one that was restored. Returns whether that was possible: if
    /// not, it is written.
    fn link_to_restored(&mut self, leaf: &Leaf<'_>, file: &StoredFile) -> bool {
        let linked = self.linked.get(&file.link_number).cloned();
        let linked = linked.filter(|linked| linked.content == file.content);
        linked.is_some_and(|linked| self.hard_link(leaf, &linked).is_ok())
    }

    fn hard_link(&mut self, leaf: &Leaf<'_>, linked: &Linked) -> io::Result<()> {
        let &Leaf { folder, name, .. } = leaf;
        let mut components: Vec<&[u8]> = linked.path.split(|byte| *byte == b'/').collect();
        let other = components.pop().unwrap_or_default();
        let mut from = self.top.open()?.try_clone_to_owned()?;
        for component in components {
            from = open_folder(from.as_fd(), component)?;
        }
        let make = |temporary: &[u8]| fs::linkat(&from, other, folder, temporary, AtFlags::empty());
        let ((), temporary) = temporary::make(make)?;
        let is_same = Status::at(folder, &temporary)?.identity == linked.identity;
        if is_same {
            fs::renameat(folder, &temporary[..], folder, name)?;
        }
        // A name that already is a link to the file stays, and the temporary one with it.
        discard(folder, &temporary);
        if is_same { Ok(()) } else { Err(io::Error::other("the file was replaced")) }
    }

    /// Writes a file. Returns its device and inode.
    fn write(&mut self, leaf: &Leaf<'_>, file: &StoredFile) -> Result<(u64, u64), ArchiveError> {
        let &Leaf { folder, name, path, attributes } = leaf;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = |temporary: &[u8]| {
            fs::openat(folder, temporary, flags | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)
        };
        let (created, temporary) = temporary::make(create).map_err(ArchiveError::Write)?;
        let mut created = File::from(created);
        let locked = temporary::lock(&created).map_err(ArchiveError::Write);
        let written = locked.and_then(|()| self.fill(&mut created, path, file));
        let status =
            written.and_then(|()| Status::of(created.as_fd()).map_err(ArchiveError::Write));
        if status.is_err() {
            discard(folder, &temporary);
        }
        let status = status?;
        if let Some(attributes) = attributes {
            self.count_owner(attributes, Some(status));
        }
        let owners = self.owners;
        let applied = match attributes {
            Some(attributes) => place::apply(created.as_fd(), attributes, owners, false),
            None => temporary::allow_usual_readers(&created),
        };
        self.note(path, applied.map_err(ArchiveError::Write))?;
        rename(folder, &temporary, name)?;
        Ok(status.identity)
    }

    fn fill(
        &mut self,
        sink: &mut File,
        path: &[u8],
        file: &StoredFile,
    ) -> Result<(), ArchiveError> {
        let mut chunks = Chunks::new(self.archive, path, file.content);
        while let Some(chunk) = chunks.next()? {
            let written = if file.has_holes {
                write_with_holes(sink, &chunk)
            } else {
                sink.write_all(&chunk)
            };
            written.map_err(ArchiveError::Write)?;
            (self.progress)(chunk.len() as u64);
        }
        if file.has_holes {
            sink.set_len(file.content.length).map_err(ArchiveError::Write)?;
        }
        Ok(())
    }
}

/// Writes bytes at the end of a file, and leaves a hole for each block of zeros in them.
fn write_with_holes(sink: &mut File, bytes: &[u8]) -> io::Result<()> {
    let mut at = sink.stream_position()?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let to_boundary = HOLE - usize::try_from(at % HOLE as u64).unwrap_or_default();
        let (block, after) = rest.split_at(to_boundary.min(rest.len()));
        if block.iter().all(|byte| *byte == 0) {
            sink.seek_relative(i64::try_from(block.len()).unwrap_or_default())?;
        } else {
            sink.write_all(block)?;
        }
        at += block.len() as u64;
        rest = after;
    }
    Ok(())
}

/// Gives a file its name, in place of any other file or link.
fn rename(folder: BorrowedFd<'_>, temporary: &[u8], name: &[u8]) -> Result<(), ArchiveError> {
    fs::renameat(folder, temporary, folder, name).map_err(|error| {
        discard(folder, temporary);
        ArchiveError::Write(error.into())
    })
}

/// Removes a temporary file, if it is there.
fn discard(folder: BorrowedFd<'_>, temporary: &[u8]) {
    fs::unlinkat(folder, temporary, AtFlags::empty()).unwrap_or_default();
}
