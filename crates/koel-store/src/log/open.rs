//! Opening a store: the manifest, the segments that it names, and their records (`recover.rs`).

use std::sync::{Arc, Mutex, RwLock};

use super::hint;
use super::hint_cache::HintCache;
use super::index::Index;
use super::options::LogOptions;
use super::segments::Segments;
use super::state::{AtEnd, Counts, LogOpenReport};
use super::store::Store;
use crate::Error;
use crate::kernel::file_names::MANIFEST;
use crate::kernel::files::Folder;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::manifest::{Manifest, StoreKind};
use crate::kernel::random::random;
use crate::kernel::recovery;
use crate::kernel::segment::Segment;
use crate::kernel::wakeup::Wakeup;

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: &LogOptions) -> Result<Self, Error> {
        let [salt, seed] = [(); 2].map(|()| options.seed.unwrap_or_else(random));
        let new = Manifest::new(StoreKind::Log, salt, seed, options.segment_bytes);
        let read_only = options.read_only;
        let (manifest, names) = recovery::manifest(&*folder, new, read_only)?;
        let table = Segments::new(manifest.segment_bytes);
        if !table.have_different_slots(&manifest.logs) {
            let what = "two segments have numbers that cannot be in use at once";
            return Err(Error::damaged(MANIFEST, 0, what));
        }
        let segments = recovery::open_log(&*folder, &manifest)?;
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
            log: Log::new(end, read_only, options.bytes_per_sync),
            hint_cache: HintCache::default(),
            counts: Counts::default(),
            segment_filled: Wakeup::default(),
            open_report: LogOpenReport { was_closed: manifest.clean, ..LogOpenReport::default() },
            folder,
        };
        let (notes, end) = store.recover(&manifest, &segments)?;
        // A crash only leaves segments with copies of records of the log, or without records. There
        // are no tables.
        let next = store.log.end().sequence;
        let files = (&manifest, &names[..]);
        store.open_report.removed =
            recovery::remove_leftovers(&*store.folder, files, next, read_only, |_| Ok(0))?;
        if let Some(last) = segments.last() {
            store.open_report.torn = recovery::cut(last, end, manifest.clean, read_only)?;
            let mut end = store.log.end();
            (end.file, end.own.notes) = (Some(last.clone()), notes);
            store.log.commits.set_durable(end.position());
        }
        Ok(store)
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
