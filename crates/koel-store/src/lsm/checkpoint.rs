//! Checkpoints: a consistent copy of the store in another folder.
//!
//! Tables never change, so the copy shares their files by hard links; if the folders cannot, they
//! are copied. The files of the log are copied up to their end. The copy was *closed*: every end in
//! its manifest is exact.
//!
//! Files are linked or opened under the lock of the manifest, and copied without it: an open file
//! can be read to its end after it was removed. So nothing waits for another disk.
//!
//! The copy goes on with file numbers from a random start. So no file that one of the two stores
//! writes later passes for one of the other.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::store::Store;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::access::{FolderLock, read_up_to, write_all};
use crate::kernel::bytes::usize_of;
use crate::kernel::files::{File, Folder};
use crate::kernel::manifest::Manifest;
use crate::kernel::poison::Poison;
use crate::kernel::recovery::random;
use crate::kernel::store_files::{LOCK, SEGMENT, TABLE};
use crate::kernel::threads::lock;

/// Bytes that are copied at a time.
const STEP: usize = 1 << 20;

/// A file that is to be copied, even if it is removed meanwhile.
#[derive(Debug)]
struct Pinned {
    name: String,
    file: Arc<dyn File>,
    /// Bytes to copy.
    len: u64,
}

impl Store {
    /// Copies the store as it is now into an empty folder.
    pub(super) fn checkpoint(&self, to: &(dyn Folder + 'static)) -> Result<(), Error> {
        let _lock = FolderLock::take(to)?;
        let names = to.list().map_err(Error::io("list", FOLDER))?;
        if names.iter().any(|name| name != LOCK) {
            return Err(Error::NotEmpty { folder: FOLDER.to_owned() });
        }
        let end = self.log.end();
        if self.log.poison.has_failed() {
            self.log.poison.check()?;
        }
        // Nobody removes a file that it names while this lock is held.
        let manifest = lock(&self.manifest);
        let mut copy = manifest.clone();
        if let (Some(last), Some(log)) = (copy.logs.last_mut(), &end.file) {
            last.end = log.end();
        }
        copy.clean = true;
        copy.sequence = end.sequence;
        drop(end);
        copy.number = self.next_number.load(Ordering::Relaxed) + self.random_distance();
        let mut made = Vec::new();
        let pinned = self.link_or_open(&copy, to, &mut made);
        drop(manifest);
        let copied = pinned.and_then(|pinned| {
            made.extend(pinned.iter().map(|file| file.name.clone()));
            pinned.iter().try_for_each(|file| file.copy(to))?;
            to.sync().map_err(Error::io("sync", FOLDER))?;
            copy.store(to, &Poison::default())
        });
        if copied.is_err() {
            // Otherwise the folder would not be empty for the next try.
            made.iter().for_each(|name| drop(to.remove(name)));
        }
        copied
    }

    /// Links the tables, if the folders can share files. Opens all other files.
    fn link_or_open(
        &self,
        copy: &Manifest,
        to: &(dyn Folder + 'static),
        linked: &mut Vec<String>,
    ) -> Result<Vec<Pinned>, Error> {
        let mut pinned = Vec::new();
        for run in &copy.runs {
            let name = TABLE.name(run.number);
            match self.folder.link(&name, to) {
                Ok(()) => linked.push(name),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    pinned.push(self.pin(name, run.bytes)?);
                }
                Err(error) => return Err(Error::io("link", &name)(error)),
            }
        }
        for log in &copy.logs {
            pinned.push(self.pin(SEGMENT.name(log.number), log.end)?);
        }
        Ok(pinned)
    }

    fn pin(&self, name: String, len: u64) -> Result<Pinned, Error> {
        let file = self.folder.open(&name).map_err(Error::io("open", &name))?;
        Ok(Pinned { name, file, len })
    }

    /// Returns how far the file numbers of a copy are from those of this store.
    fn random_distance(&self) -> u64 {
        let drawn = match self.options.seed {
            // The same bytes every time.
            Some(seed) => xxh3_64_with_seed(b"checkpoint", seed),
            None => random(),
        };
        // All numbers stay far below the limit.
        (1 << 32) + (drawn >> 6)
    }
}

impl Pinned {
    /// Copies the file, durably.
    fn copy(&self, to: &dyn Folder) -> Result<(), Error> {
        let Self { name, file: from, len } = self;
        let (name, len) = (&name[..], *len);
        let file = to.create(name).map_err(Error::io("create", name))?;
        let (mut buffer, mut at) = (vec![0; STEP], 0);
        while at < len {
            let piece = usize_of(len - at).min(STEP);
            let read = read_up_to(&**from, &mut buffer[..piece], at);
            let read = read.map_err(Error::io("read", name))?;
            if read < piece {
                return Err(Error::damaged(name, at + read as u64, "the file is cut short"));
            }
            write_all(&*file, &buffer[..piece], at).map_err(Error::io("write", name))?;
            at += piece as u64;
        }
        file.sync().map_err(Error::io("sync", name))
    }
}
