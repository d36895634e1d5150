//! Reading and checking everything in a store.
//!
//! Checks the manifest on disk, every record of the log, every byte of every table (its order, its
//! index, its hashes and counts), and that the guide knows every key. It goes on after damage, so
//! that one pass lists all of it.
//!
//! **Salvage** writes the readable entries of a store that damage keeps from opening into another
//! store.
//!
//! * **Which files.** Those that the manifest names. Without a fitting manifest (none, a damaged
//!   one, or one that names files that are missing) all files. After a crash some of these may be
//!   old; then entries that were deleted and merged away can come back.
//! * **In which order.** By their last sequence number: those of two runs do not overlap. So the
//!   last readable version of each key wins.
//! * **What is lost.** A damaged table whose hash blocks are sound still tells which keys it had.
//!   Their older values are not taken for the last ones: those keys are left out and counted.
//! * **Range deletions** of a table whose properties cannot be read are unknown: that is reported,
//!   and what they deleted may come back.
//! * **Batches** may be recovered in part, and so may unsynced writes after a torn end.
//!
//! Cost: reads everything once, twice without a manifest, and merges the result.

use std::sync::Arc;

use super::entry::LAST_SEQUENCE;
use super::store::Store;
use super::table::{self, TableFile};
use super::version::State;
use super::wal::{range_of, with_entry};
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::batch::Batch;
use crate::kernel::files::Folder;
use crate::kernel::log_end::Durability;
use crate::kernel::memory;
use crate::kernel::record::Kind;
use crate::kernel::salvage::{DamagedStore, LostKeys, SalvageReport, VerifyReport, check_manifest};
use crate::kernel::scan::{Found, Scan};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::store_files::{SEGMENT, StoreKind, TABLE};
use crate::kernel::threads::lock;

impl Store {
    pub(super) fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<VerifyReport, Error> {
        let mut report = VerifyReport::default();
        collect_damage(&mut report.damages, self.check_manifest())?;
        let (state, logs) = self.files_to_check();
        let tables = state.version.runs.iter().map(|run| run.table.info());
        let total: u64 = tables.map(|info| info.bytes).sum::<u64>()
            + logs.iter().map(|(_, end)| end).sum::<u64>();
        for run in &state.version.runs {
            let (number, done) = (run.number(), report.bytes);
            let known = report.damages.len();
            report.records += table::verify(
                &*self.folder,
                (number, self.salt, self.seed),
                &mut report.damages,
                &mut |bytes| progress(done + bytes, total),
            )?;
            self.forgive_removed(number, known, &mut report);
            report.bytes = done + run.table.info().bytes;
            progress(report.bytes, total);
        }
        for &(number, end) in &logs {
            let known = report.damages.len();
            self.check_log(number, end, &mut report)?;
            self.forgive_removed(number, known, &mut report);
            report.bytes += end;
            progress(report.bytes, total);
        }
        if report.damages.is_empty() {
            collect_damage(&mut report.damages, check_guide(&state))?;
        }
        Ok(report)
    }

    /// Returns the tables of this moment, and the files of the log with their ends.
    fn files_to_check(&self) -> (Arc<State>, Vec<(u64, u64)>) {
        let end = self.log.end();
        let manifest = lock(&self.manifest);
        let end_of_last = end.file.as_ref().map_or(FIRST_RECORD, |log| log.end());
        let logs = manifest.logs.iter().zip(1..).map(|(log, count)| {
            let is_last = count == manifest.logs.len();
            (log.number, if is_last { end_of_last } else { log.end })
        });
        (self.state.load(), logs.collect())
    }

    /// Forgets damage of a file that a flush or a merge has removed meanwhile.
    fn forgive_removed(&self, number: u64, known: usize, report: &mut VerifyReport) {
        if report.damages.len() > known && !lock(&self.manifest).names(number) {
            report.damages.truncate(known);
        }
    }

    /// Checks every record of a file of the log.
    fn check_log(&self, number: u64, end: u64, report: &mut VerifyReport) -> Result<(), Error> {
        let opened = Segment::open(&*self.folder, self.salt, number);
        let Some(file) = collect_damage(&mut report.damages, opened)? else { return Ok(()) };
        let (file, len) = (Arc::new(file), end);
        if file.end() < len {
            let what = "the file is cut short";
            report.damages.push(Damage::new(&file.name, file.end(), what));
        }
        let VerifyReport { records, damages, .. } = report;
        Scan::new(file.clone(), len.min(file.end())).each_sound(damages, |found| {
            *records += u64::from(matches!(found, Found::Record(_)));
            Ok(())
        })
    }

    /// Checks that the manifest on disk is the one of this store.
    fn check_manifest(&self) -> Result<(), Error> {
        // No other thread changes it while the lock is held.
        let expected = lock(&self.manifest);
        check_manifest(&*self.folder, StoreKind::Lsm, &self.log.poison, |it| *it == *expected)
    }
}

/// Checks that the guide names each run for each of its keys.
fn check_guide(state: &State) -> Result<(), Error> {
    for run in state.version.runs.iter().filter(|run| run.is_guided()) {
        let (mut hashes, mut some) = (run.table.hashes(), Vec::new());
        while hashes.next(&mut some)? {
            if !some.iter().all(|&hash| run.is_in(state.version.ids(hash))) {
                let what = "the guide misses a key of it; close the store, remove GUIDE, and open it again";
                return Err(Error::damaged(&TABLE.name(run.number()), 0, what));
            }
        }
    }
    Ok(())
}

/// What is wrong with a table whose properties cannot be read.
const UNKNOWN_RANGES: &str =
    "its properties cannot be read; if it had range deletions, what they deleted may be back";

/// A file of a damaged store. Files are read in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    last_sequence: u64,
    is_log: bool,
    number: u64,
}

/// What was read so far.
struct Progress<'a> {
    report: SalvageReport,
    lost: LostKeys,
    store: &'a Store,
}

impl Store {
    pub(super) fn salvage(
        &self,
        folder: &dyn Folder,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<SalvageReport, Error> {
        self.log.poison.check()?;
        let mut report = SalvageReport::default();
        let damages = &mut report.damages;
        let damaged = DamagedStore::inspect(StoreKind::Lsm, folder, damages)?;
        let parts = parts_of(&damaged, damages)?;
        let lost = LostKeys::new(damaged.manifest.as_ref());
        let mut done = Progress { report, lost, store: self };
        for (part, count) in parts.iter().zip(1..) {
            if part.is_log {
                done.read_log(&damaged, part.number)?;
            } else {
                done.read_table(&damaged, part.number)?;
            }
            progress(count, parts.len() as u64);
        }
        done.delete_outdated()?;
        self.log.sync()?;
        self.compact()?;
        done.report.lost = done.lost.values();
        Ok(done.report)
    }
}

impl Progress<'_> {
    /// Applies the range deletions of a table, and the newest version of each of its keys.
    fn read_table(&mut self, damaged: &DamagedStore<'_>, number: u64) -> Result<(), Error> {
        let Some(table) = TableFile::open(damaged.folder, number, damaged.salt)? else {
            return Ok(());
        };
        let mut damages = Vec::new();
        let deletions = table.range_deletions()?;
        if deletions.is_none() {
            damages.push(Damage::new(&TABLE.name(number), 0, UNKNOWN_RANGES));
        }
        let deletions = deletions.unwrap_or_default();
        // They hide what the files before this one have.
        for (keys, _) in deletions.iter() {
            self.store.delete_range(keys, Durability::None)?;
        }
        let mut last: Option<Vec<u8>> = None;
        table.entries(&mut damages, &mut |entry| {
            self.report.records += 1;
            if last.as_deref() == Some(entry.key) {
                return Ok(());
            }
            last = Some(memory::copy_of(entry.key)?);
            if deletions.newest(entry.key, LAST_SEQUENCE) > entry.sequence {
                return Ok(());
            }
            self.apply(entry.key, entry.value)
        })?;
        if let Some(seed) = self.lost.seed().filter(|_| !damages.is_empty()) {
            self.lost.add(table.lost_hashes(seed, false)?.1.into_iter().map(|hash| (hash, true)));
        }
        self.report.damages.append(&mut damages);
        Ok(())
    }

    /// Applies all sound records of a file of the log again.
    fn read_log(&mut self, damaged: &DamagedStore<'_>, number: u64) -> Result<(), Error> {
        let mut damages = std::mem::take(&mut self.report.damages);
        let logs = damaged.manifest.iter().flat_map(|manifest| &manifest.logs);
        let end = logs.filter(|log| log.number == number).map(|log| log.end).max().unwrap_or(0);
        if let Some(file) = damaged.open((number, end), &mut damages)? {
            Scan::new(file.clone(), file.end()).each_sound(&mut damages, |found| {
                let Found::Record(record) = found else { return Ok(()) };
                if record.header.kind == Kind::Mark {
                    return Ok(());
                }
                if let Some(keys) = range_of(&file, &record)? {
                    self.report.records += 1;
                    return self.store.delete_range(&keys, Durability::None);
                }
                with_entry(&file, &record, |key, value| {
                    self.report.records += 1;
                    self.apply(key, value)
                })
            })?;
        }
        self.report.damages = damages;
        Ok(())
    }

    /// Writes an entry that was read.
    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let mut batch = Batch::new();
        match value {
            Some(value) => batch.put(key, value)?,
            None => batch.delete(key)?,
        };
        self.store.write(&batch, Durability::None)?;
        self.lost.found(key);
        Ok(())
    }

    /// Deletes the older values of keys whose last version is unreadable.
    fn delete_outdated(&self) -> Result<(), Error> {
        if self.lost.is_empty() {
            return Ok(());
        }
        let state = self.store.state.load();
        let sequence = self.store.snapshots.visible();
        for entry in self.store.prefix_in(state, sequence, &[])? {
            let (key, _) = entry?;
            if self.lost.has(&key) {
                let mut batch = Batch::new();
                batch.delete(&key)?;
                self.store.write(&batch, Durability::None)?;
            }
        }
        Ok(())
    }
}

/// Returns the files to read, in order, and lists those that are missing.
fn parts_of(damaged: &DamagedStore<'_>, damages: &mut Vec<Damage>) -> Result<Vec<Part>, Error> {
    let table = |number, last_sequence| Part { is_log: false, last_sequence, number };
    let log = |number, last_sequence| Part { is_log: true, last_sequence, number };
    if let Some(manifest) = &damaged.manifest {
        let runs = manifest.runs.iter().map(|run| table(run.number, run.last_sequence));
        // The log is younger than all tables.
        let logs = manifest.logs.iter().map(|entry| log(entry.number, u64::MAX));
        let is_there = |part: &Part| {
            let numbers = if part.is_log { &damaged.logs } else { &damaged.tables };
            numbers.contains(&part.number)
        };
        let (mut there, gone): (Vec<Part>, Vec<Part>) = runs.chain(logs).partition(is_there);
        let has_more = damaged.logs.iter().any(|&number| number >= manifest.number);
        if gone.is_empty() && !has_more {
            there.sort_unstable();
            return Ok(there);
        }
        for Part { is_log, number, .. } in gone {
            let name = if is_log { SEGMENT.name(number) } else { TABLE.name(number) };
            damages.push(Damage::new(&name, 0, "the file is missing"));
        }
    }
    let mut parts = Vec::new();
    for &number in &damaged.tables {
        parts.push(table(number, last_sequence_of_table(damaged, number)?));
    }
    for &number in &damaged.logs {
        parts.push(log(number, last_sequence_of_log(damaged, number)?));
    }
    parts.sort_unstable();
    Ok(parts)
}

/// Returns the greatest sequence number of what is readable of a table.
fn last_sequence_of_table(damaged: &DamagedStore<'_>, number: u64) -> Result<u64, Error> {
    let mut last = 0;
    if let Some(table) = TableFile::open(damaged.folder, number, damaged.salt)? {
        let deletions = table.range_deletions()?.unwrap_or_default();
        last = deletions.sequences().map_or(0, |(_, last)| last);
        table.entries(&mut Vec::new(), &mut |entry| {
            last = last.max(entry.sequence);
            Ok(())
        })?;
    }
    Ok(last)
}

/// Returns the greatest sequence number of what is readable of a file of the log.
fn last_sequence_of_log(damaged: &DamagedStore<'_>, number: u64) -> Result<u64, Error> {
    let Some(file) = damaged.open_unchecked(number)? else { return Ok(0) };
    let (mut last, end) = (0, file.end());
    Scan::new(Arc::new(file), end).each_sound(&mut Vec::new(), |found| {
        if let Found::Record(record) = found {
            last = record.header.sequence;
        }
        Ok(())
    })?;
    Ok(last)
}
