//! Opening a store: the manifest, the segments that it names, and their records (`recover.rs`).
//!
//! Nothing is changed before all of these were checked. Then files that the manifest does not name
//! are removed (`kernel/leftovers.rs`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, RwLock};

use super::hint::{self, Notes};
use super::hint_cache::HintCache;
use super::index::Index;
use super::manifest::{Entry, Manifest};
use super::options::LogOptions;
use super::segments::Segments;
use super::state::{AtEnd, Counts, LogOpenReport};
use super::store::Store;
use crate::Error;
use crate::kernel::file_names::{self, MANIFEST};
use crate::kernel::files::Folder;
use crate::kernel::leftovers;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::poison::Poison;
use crate::kernel::random::random;
use crate::kernel::segment::Segment;
use crate::kernel::torn::{self, check_exact_length, check_last_length};
use crate::kernel::wakeup::Wakeup;

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: &LogOptions) -> Result<Self, Error> {
        let manifest = match Manifest::load(&*folder)? {
            Some(manifest) => manifest,
            None => create(&*folder, options)?,
        };
        let names = leftovers::names(&*folder, options.read_only)?;
        let table = Segments::new(manifest.segment_bytes);
        if !table.have_different_slots(&manifest.segments) {
            let what = "two segments have numbers that cannot be in use at once";
            return Err(Error::damaged(MANIFEST, 0, what));
        }
        let segments = open_segments(&*folder, &manifest)?;
        let keys = keys_to_expect(&*folder, &manifest, &segments, options.expected_keys);
        let own = AtEnd { number: manifest.number, ..AtEnd::default() };
        let end = LogEnd::new(None, manifest.sequence, !manifest.clean, own);
        let mut store = Self {
            salt: manifest.salt,
            seed: manifest.seed,
            segment_bytes: manifest.segment_bytes,
            segments: table,
            index: Index::new(keys)?,
            compacting: Mutex::default(),
            compaction_failure: Mutex::default(),
            relocating: RwLock::default(),
            log: Log::new(end, options.read_only, options.bytes_per_sync),
            hint_cache: HintCache::default(),
            counts: Counts::default(),
            segment_filled: Wakeup::default(),
            open_report: LogOpenReport { was_closed: manifest.clean, ..LogOpenReport::default() },
            folder,
        };
        let live: HashSet<u64> = manifest.segments.iter().map(|entry| entry.number).collect();
        let unnamed = leftovers::unnamed(&names, number_of, |number| live.contains(&number));
        let (notes, end) = store.recover(&manifest, &segments)?;
        // Nothing is cut off or removed before this. A crash only leaves segments with copies of
        // records of the log, or without records.
        let next = store.log.end().sequence;
        leftovers::check_are_older(&unnamed, next, |name| {
            let number = file_names::segment_number(name)?;
            Some(leftovers::first_sequence(&*store.folder, store.salt, number))
        })?;
        if !options.read_only {
            leftovers::remove(&*store.folder, &unnamed)?;
            store.open_report.removed = unnamed;
        }
        if let Some(last) = segments.last() {
            store.continue_log(last, notes, end)?;
        }
        Ok(store)
    }

    /// Prepares the last segment to be written to from `end` on. Bytes after that are a torn end.
    fn continue_log(&mut self, last: &Arc<Segment>, notes: Notes, end: u64) -> Result<(), Error> {
        let (was_closed, read_only) = (self.open_report.was_closed, self.log.poison.is_read_only());
        self.open_report.torn = torn::cut(last, end, was_closed, read_only)?;
        let mut end = self.log.end();
        end.file = Some(last.clone());
        end.own.notes = notes;
        self.log.commits.set_durable(end.position());
        Ok(())
    }
}

/// Returns the number in the name of a segment or a hint.
fn number_of(name: &str) -> Option<u64> {
    file_names::segment_number(name).or_else(|| file_names::hint_number(name))
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
fn create(folder: &dyn Folder, options: &LogOptions) -> Result<Manifest, Error> {
    leftovers::check_is_new(folder, file_names::segment_number, options.read_only)?;
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
    manifest.store(folder, &Poison::default())?;
    Ok(manifest)
}
