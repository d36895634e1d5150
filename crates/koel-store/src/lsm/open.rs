//! Opening an ordered store: the manifest, the tables and the files of the log that it names.
//!
//! Nothing is changed before all of these were checked. Then files that the manifest does not name
//! are removed (`kernel/leftovers.rs`).

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::compaction::Filter;
use super::manifest::{Manifest, RunEntry};
use super::memtable::Memtable;
use super::options::LsmOptions;
use super::snapshots::Snapshots;
use super::state::State;
use super::store::{Counts, LsmOpenReport, Store, Threads};
use super::switch::Switch;
use super::table::{BlockCache, Table};
use super::version::{Run, Version};
use super::wal::{self, Replayed};
use crate::Error;
use crate::kernel::file_names;
use crate::kernel::files::Folder;
use crate::kernel::leftovers;
use crate::kernel::log_end::{Log, LogEnd};
use crate::kernel::poison::Poison;
use crate::kernel::random::random;
use crate::kernel::segment::Segment;
use crate::kernel::torn::{self, check_exact_length, check_last_length, is_torn};

/// The files of the log, and their memtables.
#[derive(Debug, Default)]
struct Replay {
    files: Vec<Arc<Segment>>,
    memtables: Vec<Arc<Memtable>>,
    /// The last sequence number.
    sequence: u64,
    /// Where the last file ends, without a torn end.
    end: u64,
}

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: LsmOptions) -> Result<Self, Error> {
        let manifest = match Manifest::load(&*folder)? {
            Some(manifest) => manifest,
            None => create(&*folder, &options)?,
        };
        let names = leftovers::names(&*folder, options.read_only)?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let version = open_runs(&*folder, &manifest, &cache)?;
        let mut log = open_log(&*folder, &manifest, options.memtable_bytes)?;
        let next = manifest.sequence.max(log.sequence + 1);
        let unnamed = leftovers::unnamed(&names, number_of, |number| manifest.names(number));
        leftovers::check_are_older(&unnamed, next, |name| {
            if let Some(number) = file_names::segment_number(name) {
                return Some(leftovers::first_sequence(&*folder, manifest.salt, number));
            }
            let table =
                Table::open(&*folder, file_names::table_number(name)?, manifest.salt, &cache);
            Some(table.map(|table| table.info().last_sequence))
        })?;
        let mut report = LsmOpenReport {
            was_closed: manifest.clean,
            replayed: log.files.iter().map(|file| file.end()).sum(),
            ..LsmOpenReport::default()
        };
        if !options.read_only {
            leftovers::remove(&*folder, &unnamed)?;
            report.removed = unnamed;
        }
        if let Some(last) = log.files.last() {
            report.torn = torn::cut(last, log.end, manifest.clean, options.read_only)?;
        }
        let counts = Counts::default();
        counts.log_end.set(log.files.last().map_or(0, |last| last.end()));
        let end = LogEnd::new(log.files.pop(), next, !manifest.clean, ());
        let snapshots = Snapshots::default();
        snapshots.publish(next - 1);
        let active = log.memtables.pop().unwrap_or_default();
        let state = State { active, sealed: log.memtables, version: Arc::new(version) };
        Ok(Self {
            folder,
            salt: manifest.salt,
            seed: manifest.seed,
            log: Log::new(end, options.read_only, options.bytes_per_sync),
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
            next_number: AtomicU64::new(first_number(&names, &manifest)),
            manifest: Mutex::new(manifest),
            threads: Threads::default(),
            counts,
            open_report: report,
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
        if RunEntry::new(table.info()) == *entry {
            Ok(Run::new(Arc::new(table)))
        } else {
            let what = "it is not the table that MANIFEST names";
            Err(Error::damaged(&file_names::table(entry.number), 0, what))
        }
    };
    let runs: Result<Vec<_>, Error> = manifest.runs.iter().map(open).collect();
    Ok(Version { runs: runs?, ..Version::default() })
}

/// Opens the files of the log that the manifest names, and replays them.
fn open_log(
    folder: &dyn Folder,
    manifest: &Manifest,
    memtable_bytes: u64,
) -> Result<Replay, Error> {
    let newest = manifest.runs.first().map_or(0, |run| run.last_sequence);
    let mut log = Replay { sequence: newest, ..Replay::default() };
    for (i, entry) in manifest.logs.iter().enumerate() {
        let file = Arc::new(Segment::open(folder, manifest.salt, entry.number)?);
        let is_exact = manifest.has_exact_end(i);
        if is_exact {
            check_exact_length(&file, entry.end)?;
        } else {
            check_last_length(&file, entry.end)?;
        }
        let memtable = Memtable::new(entry.number, memtable_bytes, manifest.seed);
        let Replayed { sequence, whole, lost } = wal::replay(&file, log.sequence, &memtable)?;
        log.sequence = sequence;
        log.end = match lost {
            None => file.end(),
            Some(_) if !is_exact && is_torn(&file, entry.end, whole)? => whole,
            Some(error) => return Err(error),
        };
        log.files.push(file);
        log.memtables.push(Arc::new(memtable));
    }
    Ok(log)
}

fn number_of(name: &str) -> Option<u64> {
    file_names::segment_number(name).or_else(|| file_names::table_number(name))
}

/// Returns the number of the next file. No file has had it, named or not.
fn first_number(names: &[String], manifest: &Manifest) -> u64 {
    let used = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
    manifest.number.max(used.saturating_add(1))
}

/// Creates the manifest of a new store, unless the store is to be read-only.
fn create(folder: &dyn Folder, options: &LsmOptions) -> Result<Manifest, Error> {
    leftovers::check_is_new(folder, number_of, options.read_only)?;
    let manifest = Manifest {
        clean: true,
        salt: options.seed.unwrap_or_else(random),
        seed: options.seed.unwrap_or_else(random),
        sequence: 1,
        number: 1,
        ..Manifest::default()
    };
    manifest.store(folder, &Poison::default())?;
    Ok(manifest)
}
