//! Restoring a file or a link in an open folder.
//!
//! A file is written under a temporary name, checked, given its attributes, and renamed. So it
//! replaces a file or a link of its name, and is never written through a link.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};

use super::place::{Place, open_folder};
use super::problem::Problem;
use super::restore::{Linked, Restore};
use super::status::{self, Status};
use crate::content::entry::{Attributes, Entry, Kind, StoredFile};
use crate::content::error::ArchiveError;
use crate::content::read::Chunks;
use crate::content::temporary;

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
        let applied =
            attributes.map_or(Ok(()), |it| status::apply_to_link(folder, &temporary, it, owners));
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
        if !self.owners && leaf.attributes.is_some_and(|it| it.mode & status::SET_ID != 0) {
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
        let owners = self.owners;
        let applied = match attributes {
            Some(attributes) => status::apply(created.as_fd(), attributes, owners, false),
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
