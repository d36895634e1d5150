//! Importing a file: known from the last version, or read.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;

use super::import::{Import, new_entry};
use super::status::{self, Status};
use crate::content::entry::{Content, Entry, Kind, Stamp, StoredFile};
use crate::content::error::ArchiveError;

/// How often a file is read that changes meanwhile.
const READS: usize = 2;

impl Import<'_> {
    /// Returns the entry of a file that is known not to have changed, or that has another name in
    /// this version.
    pub(super) fn known(
        &mut self,
        path: &[u8],
        status: &Status,
        before: Option<&Entry>,
    ) -> Option<Entry> {
        if let Some((stamp, file, had_extended)) = self.linked.get(&status.identity)
            && *stamp == status.stamp
        {
            let (file, had_extended) = (*file, *had_extended);
            self.count_file(path, file.content, had_extended);
            return Some(Entry { had_extended, ..new_entry(status, Kind::File(file)) });
        }
        let before = before.filter(|_| !self.options.read_all)?;
        let Kind::File(mut file) = before.kind else { return None };
        let is_same = file.stamp == status.stamp
            && file.content.length == status.length
            && before.attributes == Some(status.attributes);
        if !is_same {
            return None;
        }
        self.report.unchanged += 1;
        self.link(status, &mut file, before.had_extended);
        self.count_file(path, file.content, before.had_extended);
        Some(Entry { name: Vec::new(), kind: Kind::File(file), ..before.clone() })
    }

    /// Stores the bytes of an open file. One that changes meanwhile is read again; if it changes
    /// again, it is marked.
    pub(super) fn file(&mut self, path: &[u8], file: OwnedFd) -> Result<Entry, ArchiveError> {
        let had_extended = status::has_extended(file.as_fd());
        let mut source = File::from(file);
        let (mut status, mut file) = self.read(&source)?;
        for _ in 1..READS {
            if file.changed_while_read {
                source.rewind().map_err(ArchiveError::Read)?;
                (status, file) = self.read(&source)?;
            }
        }
        if file.changed_while_read {
            let what = "it changed while it was read, twice; its bytes may be of several moments";
            self.report_problem(path, what.to_owned());
        }
        self.link(&status, &mut file, had_extended);
        self.count_file(path, file.content, had_extended);
        Ok(Entry { had_extended, ..new_entry(&status, Kind::File(file)) })
    }

    /// Stores the bytes of an open file, which is at its start.
    fn read(&mut self, source: &File) -> Result<(Status, StoredFile), ArchiveError> {
        let status = Status::of(source.as_fd()).map_err(ArchiveError::Read)?;
        if status.kind != FileType::RegularFile {
            return Err(ArchiveError::Read(io::Error::other("it is no longer a file")));
        }
        let stamp = status.lasting_stamp();
        let metered = Metered { file: source, progress: &mut *self.progress };
        let content = self.writer.store(metered, self.options.chunking)?;
        let after = Status::of(source.as_fd()).map_err(ArchiveError::Read)?;
        let changed = after.stamp != status.stamp || after.length != content.length;
        let file = StoredFile {
            has_holes: status.has_holes,
            changed_while_read: changed,
            ..StoredFile::new(content, if changed { Stamp::default() } else { stamp })
        };
        Ok((status, file))
    }

    /// Gives a file with several names the number that these share in the version.
    fn link(&mut self, status: &Status, file: &mut StoredFile, had_extended: bool) {
        file.link_number = 0;
        if status.has_other_names {
            file.link_number = self.linked.len() as u64 + 1;
            self.linked.insert(status.identity, (status.stamp, *file, had_extended));
        }
    }

    fn count_file(&mut self, path: &[u8], content: Content, had_extended: bool) {
        self.report.files += 1;
        self.report.length += content.length;
        self.report_extended(path, had_extended);
    }
}

/// A file that reports how much of it was read.
struct Metered<'a> {
    file: &'a File,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        (self.progress)(count as u64);
        Ok(count)
    }
}
