//! Opening a store: the manifest, the segments that it names, and their records (`recover.rs`).
//!
//! Nothing is changed before all of these were checked. Then files that the manifest does not name
//! are removed. But if such a segment continues the log, the manifest is an older one: a crash
//! leaves no such file, while a MANIFEST restored alone does. If it belongs to another store, so
//! may the manifest. Both are errors.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, RwLock};

use super::hint::{self, Notes};
use super::hint_cache::HintCache;
use super::index::Index;
use super::options::Options;
use super::segments::Segments;
use super::state::{Counts, OpenReport, Writer};
use super::store::Store;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::durability::GroupCommit;
use crate::kernel::file_names::{self, MANIFEST, NEW_MANIFEST};
use crate::kernel::files::Folder;
use crate::kernel::lock::lock;
use crate::kernel::manifest::{Entry, Manifest};
use crate::kernel::poison::Poison;
use crate::kernel::random::random;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::torn::{TornEnd, check_exact_length, check_last_length};
use crate::kernel::wakeup::Wakeup;

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: &Options) -> Result<Self, Error> {
        let manifest = match Manifest::load(&*folder)? {
            Some(manifest) if options.read_only => manifest,
            Some(manifest) => {
                // A process that crashed may have left names that are not durable. They must be
                // before anything depends on them.
                folder.sync().map_err(Error::io("sync", FOLDER))?;
                manifest
            }
            None => create(&*folder, options)?,
        };
        let names = folder.list().map_err(Error::io("list", FOLDER))?;
        let table = Segments::new(manifest.segment_bytes);
        if !table.have_different_slots(&manifest.segments) {
            let what = "two segments have numbers that cannot be in use at once";
            return Err(Error::damaged(MANIFEST, 0, what));
        }
        let segments = open_segments(&*folder, &manifest)?;
        let keys = keys_to_expect(&*folder, &manifest, &segments, options.expected_keys);
        let mut store = Self {
            salt: manifest.salt,
            seed: manifest.seed,
            segment_bytes: manifest.segment_bytes,
            segments: table,
            index: Index::new(keys)?,
            compacting: Mutex::default(),
            compaction_failure: Mutex::default(),
            relocating: RwLock::default(),
            writer: Mutex::new(Writer {
                sequence: manifest.sequence,
                number: manifest.number,
                announced: !manifest.clean,
                ..Writer::default()
            }),
            commits: GroupCommit::default(),
            poison: if options.read_only { Poison::read_only() } else { Poison::default() },
            hint_cache: HintCache::default(),
            counts: Counts::default(),
            segment_filled: Wakeup::default(),
            sync_due: Wakeup::default(),
            bytes_per_sync: options.bytes_per_sync,
            open_report: OpenReport { was_closed: manifest.clean, ..OpenReport::default() },
            folder,
        };
        let unnamed = unnamed_files(&names, &manifest);
        let (notes, end) = store.recover(&manifest, &segments)?;
        // Nothing is cut off or removed before this.
        store.check_manifest_is_current(&unnamed)?;
        if !options.read_only {
            store.remove_files(unnamed)?;
        }
        if let Some(last) = segments.last() {
            store.continue_log(last, notes, end)?;
        }
        Ok(store)
    }

    /// Returns an error if an unnamed segment continues the log: then a later manifest names it. A
    /// crash only leaves segments with copies of records of the log, or without records.
    fn check_manifest_is_current(&self, unnamed: &[String]) -> Result<(), Error> {
        let next = lock(&self.writer).sequence;
        for name in unnamed {
            let Some(number) = file_names::segment_number(name) else { continue };
            if self.first_sequence(number)?.is_some_and(|first| first >= next) {
                return Err(Error::OldManifest { file: name.clone() });
            }
        }
        Ok(())
    }

    /// Returns the sequence number of the first record of a segment, if that is sound.
    fn first_sequence(&self, number: u64) -> Result<Option<u64>, Error> {
        let first = Segment::open(&*self.folder, self.salt, number)
            .and_then(|segment| segment.record(FIRST_RECORD, &mut Vec::new()));
        match first {
            Ok(header) => Ok(Some(header.sequence)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove_files(&mut self, unnamed: Vec<String>) -> Result<(), Error> {
        for name in &unnamed {
            self.folder.remove(name).map_err(Error::io("remove", name))?;
        }
        self.open_report.removed = unnamed;
        Ok(())
    }

    /// Prepares the last segment to be written to from `end` on. Bytes after that are a torn end.
    fn continue_log(&mut self, last: &Arc<Segment>, notes: Notes, end: u64) -> Result<(), Error> {
        let len = last.end();
        let read_only = self.poison.is_read_only();
        if end < len {
            if read_only {
                last.set_end(end)
            } else {
                last.truncate(end)?
            }
            let (file, bytes) = (last.name.clone(), len - end);
            self.open_report.torn = Some(TornEnd { file, offset: end, bytes });
        }
        if !self.open_report.was_closed && !read_only {
            last.sync()?;
        }
        let mut writer = lock(&self.writer);
        writer.active = Some(last.clone());
        writer.marked = FIRST_RECORD;
        writer.notes = notes;
        self.commits.set_durable(writer.position());
        Ok(())
    }
}

/// Returns the number of keys for which the index makes room. The manifest may ask for more than
/// `expected`, but for no more than there are records in sound hints: a number in a file alone does
/// not decide how much memory is taken.
fn keys_to_expect(
    folder: &dyn Folder,
    manifest: &Manifest,
    segments: &[Arc<Segment>],
    expected: u64,
) -> u64 {
    let mut records = 0;
    for segment in segments {
        if records.max(expected) >= manifest.keys {
            break;
        }
        let hint = hint::read(folder, segment.position(segment.end()), manifest.segment_bytes);
        records += hint.map_or(0, |hint| hint.notes.iter().count() as u64);
    }
    records.min(manifest.keys).max(expected)
}

/// Returns the files of a store that the manifest does not name: those of a compaction that was
/// interrupted, those that it replaced, or a segment that was never written to.
fn unnamed_files(names: &[String], manifest: &Manifest) -> Vec<String> {
    let live: HashSet<u64> = manifest.segments.iter().map(|entry| entry.number).collect();
    let is_unnamed = |name: &&String| {
        let number = file_names::segment_number(name).or_else(|| file_names::hint_number(name));
        number.is_some_and(|number| !live.contains(&number)) || *name == NEW_MANIFEST
    };
    names.iter().filter(is_unnamed).cloned().collect()
}

/// Opens the segments that the manifest names, and checks their lengths.
fn open_segments(folder: &dyn Folder, manifest: &Manifest) -> Result<Vec<Arc<Segment>>, Error> {
    let open = |(i, entry): (usize, &Entry)| {
        let segment = Segment::open(folder, manifest.salt, entry.number)?;
        segment.set_cleaned(entry.cleaned);
        if manifest.has_exact_end(i) {
            check_exact_length(&segment, entry.end)?;
        } else {
            check_last_length(&segment, entry.end)?;
        }
        Ok(Arc::new(segment))
    };
    manifest.segments.iter().enumerate().map(open).collect()
}

/// Creates the manifest of a new store, unless the store is to be read-only.
fn create(folder: &dyn Folder, options: &Options) -> Result<Manifest, Error> {
    let names = folder.list().map_err(Error::io("list", FOLDER))?;
    if names.iter().any(|name| file_names::segment_number(name).is_some()) {
        return Err(Error::NoManifest);
    }
    if options.read_only {
        return Err(Error::NoStore { folder: FOLDER.to_owned() });
    }
    let manifest = Manifest {
        clean: true,
        salt: options.seed.unwrap_or_else(random),
        seed: options.seed.unwrap_or_else(random),
        segment_bytes: options.segment_bytes,
        sequence: 1,
        number: 1,
        keys: 0,
        segments: Vec::new(),
    };
    manifest.store(folder)?;
    Ok(manifest)
}
