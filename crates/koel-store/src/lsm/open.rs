//! Opening an ordered store: the manifest, the tables and the files of the log that it names.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::compaction::Filter;
use super::guide::Guide;
use super::memtable::Memtable;
use super::options::LsmOptions;
use super::snapshots::Snapshots;
use super::store::{Counts, Store, Threads};
use super::switch::Switch;
use super::table::{BlockCache, Table};
use super::version::{Run, State, Version};
use super::wal;
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::manifest::{Manifest, RunEntry};
use crate::kernel::recovery::{self, OpenReport};
use crate::kernel::store_files::{StoreKind, TABLE};

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: LsmOptions) -> Result<Self, Error> {
        let (read_only, kind) = (options.read_only, (StoreKind::Lsm, 0));
        let (manifest, names) = recovery::manifest(&*folder, kind, options.seed, read_only)?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let version = open_runs(&*folder, &manifest, &cache)?;
        let mut files = recovery::open_log(&*folder, &manifest)?;
        let mut sequence = manifest.runs.first().map_or(0, |run| run.last_sequence);
        let (mut memtables, mut end) = (Vec::new(), 0);
        for (place, file) in files.iter().enumerate() {
            let memtable = Memtable::new(file.number, options.memtable_bytes, manifest.seed);
            (sequence, end) = wal::replay(file, (&manifest, place), sequence, &memtable)?;
            memtables.push(Arc::new(memtable));
        }
        let next = manifest.sequence.max(sequence + 1);
        let last = |number| {
            let table = Table::open(&*folder, number, manifest.salt, &cache)?;
            Ok(table.info().last_sequence)
        };
        let named = (&manifest, &names[..]);
        let removed = recovery::remove_leftovers(&*folder, named, next, read_only, last)?;
        if !read_only {
            Guide::remove_later(&*folder, (manifest.salt, manifest.number))?;
        }
        let replayed = files.iter().map(|file| file.end()).sum();
        let was_closed = manifest.clean;
        let mut open_report = OpenReport { was_closed, replayed, removed, ..OpenReport::default() };
        if let Some(last) = files.last() {
            open_report.torn = recovery::cut(last, end, manifest.clean, read_only)?;
        }
        let counts = Counts::default();
        counts.log_end.set(files.last().map_or(0, |last| last.end()));
        let end = LogEnd::new(files.pop(), next, !manifest.clean, ());
        let snapshots = Snapshots::default();
        snapshots.publish(next - 1);
        let active = memtables.pop().unwrap_or_default();
        let state = State::default().with_sources(active, memtables, Arc::new(version), &[]);
        Ok(Self {
            folder,
            salt: manifest.salt,
            seed: manifest.seed,
            log: Log::new(end, read_only, options.bytes_per_sync),
            prepared: Mutex::default(),
            filter: options.filter.clone().map(Filter::new),
            young_limits: options.picker(options.most_runs()).young_limits(),
            options,
            cache,
            state: Switch::new(state),
            snapshots,
            flushing: Mutex::default(),
            jobs: Mutex::default(),
            versions: Mutex::default(),
            saved_guide: Mutex::default(),
            next_number: AtomicU64::new(first_number(&names, &manifest)),
            manifest: Mutex::new(manifest),
            threads: Threads::default(),
            counts,
            open_report,
        })
    }
}

/// Opens the tables that the manifest names. Their ids mean nothing yet.
fn open_runs(
    folder: &dyn Folder,
    manifest: &Manifest,
    cache: &Arc<BlockCache>,
) -> Result<Version, Error> {
    let open = |entry: &RunEntry| {
        let table = Table::open(folder, entry.number, manifest.salt, cache)?;
        if table.info().run_entry() == *entry {
            Ok(Run::new(Arc::new(table)))
        } else {
            let what = "it is not the table that MANIFEST names";
            Err(Error::damaged(&TABLE.name(entry.number), 0, what))
        }
    };
    let runs: Result<Vec<_>, Error> = manifest.runs.iter().map(open).collect();
    Ok(Version { runs: runs?, ..Version::default() })
}

/// Returns the number of the next file. No file has had it, named or not.
fn first_number(names: &[String], manifest: &Manifest) -> u64 {
    let numbers = names.iter().filter_map(|name| recovery::number_of(manifest.kind, name));
    manifest.number.max(numbers.max().unwrap_or(0).saturating_add(1))
}
