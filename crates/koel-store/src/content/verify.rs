//! The checks of an export, for every version, without writing anything.

use std::collections::{BTreeSet, HashMap};

use super::entry::{Content, Entry, Kind, StoredFolder};
use super::error::ArchiveError;
use super::keys::Hash;
use super::read::{Chunks, Listing, check_depth};
use super::{Archive, names};

/// What [`Archive::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveVerifyReport {
    /// The number of files whose every byte is right, in all versions.
    pub sound: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// The other files and folders: their names, escaped, and what is wrong. If the name is
    /// unreadable, it is `version` and the number. A file that is broken in several versions comes
    /// once.
    pub broken: Vec<(String, String)>,
    /// Files, folders and links that are missing: the entries of their folders cannot be read. They
    /// are in none of the other numbers.
    pub missing: u64,
    /// The names, escaped, of files that changed while they were imported. Their bytes are those
    /// that were read, perhaps at several moments.
    pub changed: BTreeSet<String>,
}

/// Files and bytes that are sound.
#[derive(Clone, Copy, Debug, Default)]
struct Sound {
    files: u64,
    bytes: u64,
}

/// A verification in progress.
struct Verification<'a> {
    archive: &'a Archive,
    /// What was read already, as a file or as a folder, by height and root.
    seen: HashMap<(bool, u8, Hash), Sound>,
    report: ArchiveVerifyReport,
    progress: &'a mut dyn FnMut(u64),
}

impl Archive {
    /// Reads every chunk of every file in all versions, and compares each chunk and each file with
    /// its hash. Calls `progress` with the bytes of each chunk. What several versions share is read
    /// once.
    ///
    /// This checks files; [`LogStore::verify`](crate::LogStore::verify) checks records.
    ///
    /// # Errors
    /// Those of reading the number of versions. A broken file is not an error but part of the
    /// report.
    pub fn verify(
        &self,
        mut progress: impl FnMut(u64),
    ) -> Result<ArchiveVerifyReport, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let mut verification = Verification {
            archive: self,
            seen: HashMap::new(),
            report: ArchiveVerifyReport::default(),
            progress: &mut progress,
        };
        let numbers = self.numbers()?;
        for number in numbers.all {
            let found = verification.check_version(number);
            verification.report.sound += found.files;
            verification.report.bytes = verification.report.bytes.saturating_add(found.bytes);
        }
        if let Some(damage) = numbers.damage {
            verification.note("list of versions".to_owned(), damage);
        }
        Ok(verification.report)
    }
}

impl Verification<'_> {
    fn check_version(&mut self, number: u64) -> Sound {
        let version = match self.archive.stored_version(number) {
            Ok(None) => return Sound::default(),
            Ok(Some(version)) => version,
            Err(error) => {
                self.note(format!("version {number}"), error);
                return Sound::default();
            }
        };
        match self.archive.numbers_of(&version.name) {
            Ok(Some(numbers)) if numbers.contains(&number) => {
                self.check(&version.name, &version.entry, 0)
            }
            Ok(_) => Sound::default(),
            Err(error) => {
                self.note(names::escape(&version.name), error);
                Sound::default()
            }
        }
    }

    fn check(&mut self, path: &[u8], entry: &Entry, depth: usize) -> Sound {
        let Some(content) = entry.content() else { return Sound::default() };
        if matches!(entry.kind, Kind::File(file) if file.changed_while_read) {
            self.report.changed.insert(names::escape(path));
        }
        let folder = match entry.kind {
            Kind::Folder(folder) => Some(folder),
            _ => None,
        };
        let key = (folder.is_some(), content.height, content.root);
        if let Some(sound) = self.seen.get(&key) {
            return *sound;
        }
        let mut sound = Sound::default();
        let checked = if let Some(folder) = folder {
            self.check_folder(path, folder, depth, &mut sound)
        } else {
            self.check_bytes(path, content).map(|()| {
                sound = Sound { files: 1, bytes: content.length };
            })
        };
        if let Err(error) = checked {
            self.note(names::escape(path), error);
        }
        self.seen.insert(key, sound);
        sound
    }

    fn check_bytes(&mut self, path: &[u8], content: Content) -> Result<(), ArchiveError> {
        let mut chunks = Chunks::new(self.archive, path, content);
        while let Some(chunk) = chunks.next()? {
            (self.progress)(chunk.len() as u64);
        }
        Ok(())
    }

    fn check_folder(
        &mut self,
        path: &[u8],
        folder: StoredFolder,
        depth: usize,
        sound: &mut Sound,
    ) -> Result<(), ArchiveError> {
        let mut missing = folder.below;
        let checked = check_depth(path, depth).and_then(|()| {
            let mut listing = Listing::new(self.archive, path, folder.content);
            while let Some(entry) = listing.next()? {
                missing = missing.saturating_sub(entry.count());
                let found = self.check(&names::join(path, &entry.name), &entry, depth + 1);
                sound.files = sound.files.saturating_add(found.files);
                sound.bytes = sound.bytes.saturating_add(found.bytes);
            }
            Ok(())
        });
        checked.map_err(|error| {
            self.report.missing = self.report.missing.saturating_add(missing);
            error.with_missing(path, missing)
        })
    }

    fn note(&mut self, name: String, error: ArchiveError) {
        let what = match error {
            ArchiveError::Broken { what, .. } => what,
            error => error.to_string(),
        };
        self.report.broken.push((name, what));
    }
}
