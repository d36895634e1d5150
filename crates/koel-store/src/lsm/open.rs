//! Opening an ordered store: the manifest, the tables and the files of the log that it names.
//!
//! Nothing is changed before all of these were checked. Then files that the manifest does not name
//! are removed. But if such a file has a sequence number that no named one has reached, the
//! manifest is an older one: a crash leaves no such file, while a MANIFEST restored alone does.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::compaction::Filter;
use super::manifest::{Manifest, RunEntry};
use super::memtable::Memtable;
use super::options::LsmOptions;
use super::snapshots::Snapshots;
use super::state::State;
use super::store::{Counts, LsmOpenReport, Store, Threads, Writer};
use super::switch::Switch;
use super::table::{BlockCache, Table};
use super::version::{Run, Version};
use super::wal::{self, Replayed};
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::durability::GroupCommit;
use crate::kernel::file_names::{self, NEW_MANIFEST};
use crate::kernel::files::Folder;
use crate::kernel::poison::Poison;
use crate::kernel::random::random;
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::torn::{TornEnd, check_exact_length, check_last_length, is_torn};

/// The files of the log, and their memtables.
#[derive(Debug, Default)]
struct Log {
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
            Some(manifest) if options.read_only => manifest,
            Some(manifest) => {
                // A process that crashed may have left names that are not durable. They must be
                // before anything depends on them.
                folder.sync().map_err(Error::io("sync", FOLDER))?;
                manifest
            }
            None => create(&*folder, &options)?,
        };
        let names = folder.list().map_err(Error::io("list", FOLDER))?;
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let version = open_runs(&*folder, &manifest, &cache)?;
        let mut log = open_log(&*folder, &manifest, options.memtable_bytes)?;
        let next = manifest.sequence.max(log.sequence + 1);
        let unnamed = unnamed_files(&names, &manifest);
        check_manifest_is_current(&*folder, &manifest, &unnamed, next, &cache)?;
        let mut report = LsmOpenReport {
            was_closed: manifest.clean,
            replayed: log.files.iter().map(|file| file.end()).sum(),
            ..LsmOpenReport::default()
        };
        if !options.read_only {
            remove_files(&*folder, &unnamed)?;
            report.removed = unnamed;
        }
        report.torn = cut_torn_end(&log, &manifest, options.read_only)?;
        let (commits, counts) = (GroupCommit::default(), Counts::default());
        counts.log_end.set(log.files.last().map_or(0, |last| last.end()));
        let writer = Writer {
            log: log.files.pop(),
            sequence: next,
            marked: FIRST_RECORD,
            sync_requested: FIRST_RECORD,
            announced: !manifest.clean,
        };
        commits.set_durable(writer.position());
        let snapshots = Snapshots::default();
        snapshots.publish(next - 1);
        let active = log.memtables.pop().unwrap_or_default();
        let state = State { active, sealed: log.memtables, version: Arc::new(version) };
        let poison = if options.read_only { Poison::read_only() } else { Poison::default() };
        Ok(Self {
            folder,
            salt: manifest.salt,
            seed: manifest.seed,
            filter: options.filter.clone().map(Filter::new),
            young_limits: options.picker(options.most_runs()).young_limits(),
            options,
            cache,
            state: Switch::new(state),
            snapshots,
            writer: Mutex::new(writer),
            flushing: Mutex::default(),
            jobs: Mutex::default(),
            versions: Mutex::default(),
            next_number: AtomicU64::new(first_number(&names, &manifest)),
            manifest: Mutex::new(manifest),
            commits,
            poison,
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
fn open_log(folder: &dyn Folder, manifest: &Manifest, memtable_bytes: u64) -> Result<Log, Error> {
    let newest = manifest.runs.first().map_or(0, |run| run.last_sequence);
    let mut log = Log { sequence: newest, ..Log::default() };
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

/// Returns an error if an unnamed file has a sequence number from `next` on: then a later manifest
/// names it.
fn check_manifest_is_current(
    folder: &dyn Folder,
    manifest: &Manifest,
    unnamed: &[String],
    next: u64,
    cache: &Arc<BlockCache>,
) -> Result<(), Error> {
    for name in unnamed {
        let sequence = if let Some(number) = file_names::segment_number(name) {
            let first = Segment::open(folder, manifest.salt, number)
                .and_then(|file| file.record(FIRST_RECORD, &mut Vec::new()));
            first.map(|header| header.sequence)
        } else if let Some(number) = file_names::table_number(name) {
            let table = Table::open(folder, number, manifest.salt, cache);
            table.map(|table| table.info().last_sequence)
        } else {
            continue;
        };
        match sequence {
            Ok(sequence) if sequence >= next => {
                return Err(Error::OldManifest { file: name.clone() });
            }
            // A file that was not finished.
            Ok(_) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the files of a store that the manifest does not name: those that were being written, or
/// that others have replaced.
fn unnamed_files(names: &[String], manifest: &Manifest) -> Vec<String> {
    let is_unnamed = |name: &&String| {
        number_of(name).is_some_and(|number| !manifest.names(number)) || *name == NEW_MANIFEST
    };
    names.iter().filter(is_unnamed).cloned().collect()
}

fn number_of(name: &str) -> Option<u64> {
    file_names::segment_number(name).or_else(|| file_names::table_number(name))
}

/// Returns the number of the next file. No file has had it, named or not.
fn first_number(names: &[String], manifest: &Manifest) -> u64 {
    let used = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
    manifest.number.max(used.saturating_add(1))
}

fn remove_files(folder: &dyn Folder, names: &[String]) -> Result<(), Error> {
    names.iter().try_for_each(|name| folder.remove(name).map_err(Error::io("remove", name)))
}

/// Prepares the last file of the log to be written to: cuts off its torn end.
fn cut_torn_end(log: &Log, manifest: &Manifest, read_only: bool) -> Result<Option<TornEnd>, Error> {
    let Some(last) = log.files.last() else { return Ok(None) };
    let mut torn = None;
    let len = last.end();
    if log.end < len {
        if read_only {
            last.set_end(log.end);
        } else {
            last.truncate(log.end)?;
        }
        torn = Some(TornEnd { file: last.name.clone(), offset: log.end, bytes: len - log.end });
    }
    if !manifest.clean && !read_only {
        last.sync()?;
    }
    Ok(torn)
}

/// Creates the manifest of a new store, unless the store is to be read-only.
fn create(folder: &dyn Folder, options: &LsmOptions) -> Result<Manifest, Error> {
    let names = folder.list().map_err(Error::io("list", FOLDER))?;
    if names.iter().any(|name| number_of(name).is_some()) {
        return Err(Error::NoManifest);
    }
    if options.read_only {
        return Err(Error::NoStore { folder: FOLDER.to_owned() });
    }
    let manifest = Manifest {
        clean: true,
        salt: options.seed.unwrap_or_else(random),
        seed: options.seed.unwrap_or_else(random),
        sequence: 1,
        number: 1,
        ..Manifest::default()
    };
    manifest.store(folder)?;
    Ok(manifest)
}
