//! Salvage: the readable entries of a store that damage keeps from opening, written into another
//! store.
//!
//! * **Which files.** Those that the manifest names. Without a fitting manifest (none, a damaged
//!   one, or one that names files that are missing) all files. After a crash some of these may be
//!   old; then entries that were deleted and merged away can come back.
//! * **In which order.** By their last sequence number: those of two runs do not overlap. So the
//!   last readable version of each key wins.
//! * **What is lost.** A damaged table whose hash blocks are sound still tells which keys it had.
//!   Their older values are not taken for the last ones: those keys are left out and counted.
//! * **Batches** may be recovered in part, and so may unsynced writes after a torn end.
//!
//! Cost: reads everything once, twice without a manifest, and merges the result.

use std::collections::HashSet;
use std::sync::Arc;

use super::entry::hash_of;
use super::manifest::Manifest;
use super::store::Store;
use super::table::DamagedTable;
use super::wal::entry_of;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::batch::Batch;
use crate::kernel::damage::{Damage, collect_damage};
use crate::kernel::durability::Durability;
use crate::kernel::file_names::{self, MANIFEST};
use crate::kernel::files::Folder;
use crate::kernel::kind::StoreKind;
use crate::kernel::memory;
use crate::kernel::record::Kind;
use crate::kernel::scan::Scan;
use crate::kernel::segment::Segment;

/// What [`LsmStore::salvage`](super::LsmStore::salvage) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LsmSalvageReport {
    /// The number of sound entries that were read, old versions and deletions included.
    pub records: u64,
    /// The number of keys that were left out because their last version is unreadable.
    pub lost: u64,
    /// What could not be read; empty if the store was sound.
    pub damages: Vec<Damage>,
}

/// A file of a damaged store. Files are read in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    last_sequence: u64,
    is_log: bool,
    number: u64,
}

/// What there is of a damaged store.
struct DamagedStore<'a> {
    folder: &'a dyn Folder,
    salt: u64,
    /// The seed of the hash of keys; unknown without a manifest.
    seed: Option<u64>,
    parts: Vec<Part>,
}

/// What was read so far.
struct Progress<'a> {
    report: LsmSalvageReport,
    /// Hashes of keys whose last version is unreadable.
    lost: HashSet<u64>,
    seed: Option<u64>,
    store: &'a Store,
}

impl Store {
    pub(super) fn salvage(
        &self,
        folder: &dyn Folder,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<LsmSalvageReport, Error> {
        self.log.poison.check()?;
        StoreKind::Lsm.expect(folder)?;
        let mut report = LsmSalvageReport::default();
        let damaged = DamagedStore::inspect(folder, &mut report.damages)?;
        let (seed, lost) = (damaged.seed, HashSet::new());
        let mut done = Progress { report, lost, seed, store: self };
        let total = damaged.parts.len() as u64;
        for (part, count) in damaged.parts.iter().zip(1..) {
            if part.is_log {
                damaged.read_log(part.number, &mut done)?;
            } else {
                damaged.read_table(part.number, &mut done)?;
            }
            progress(count, total);
        }
        done.delete_outdated()?;
        self.log.sync()?;
        self.compact()?;
        done.report.lost = done.lost.len() as u64;
        Ok(done.report)
    }
}

impl Progress<'_> {
    /// Writes an entry that was read.
    fn apply(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        let mut batch = Batch::new();
        match value {
            Some(value) => batch.put(key, value)?,
            None => batch.delete(key)?,
        };
        self.store.write(&batch, Durability::None)?;
        if let Some(seed) = self.seed {
            self.lost.remove(&hash_of(key, seed));
        }
        Ok(())
    }

    /// Deletes the keys whose last version is unreadable.
    fn delete_outdated(&self) -> Result<(), Error> {
        let Some(seed) = self.seed.filter(|_| !self.lost.is_empty()) else { return Ok(()) };
        let state = self.store.state.load();
        let sequence = self.store.snapshots.visible();
        for entry in self.store.prefix_in(state, sequence, &[])? {
            let (key, _) = entry?;
            if self.lost.contains(&hash_of(&key, seed)) {
                let mut batch = Batch::new();
                batch.delete(&key)?;
                self.store.write(&batch, Durability::None)?;
            }
        }
        Ok(())
    }
}

impl<'a> DamagedStore<'a> {
    fn inspect(folder: &'a dyn Folder, damages: &mut Vec<Damage>) -> Result<Self, Error> {
        let names = folder.list().map_err(Error::io("list", FOLDER))?;
        let missing = || Error::damaged(MANIFEST, 0, "the file is missing");
        let manifest = Manifest::load(folder).and_then(|found| found.ok_or_else(missing));
        let manifest = collect_damage(damages, manifest)?;
        let numbers = |number: fn(&str) -> Option<u64>| -> Vec<u64> {
            names.iter().filter_map(|name| number(name)).collect()
        };
        let tables = numbers(file_names::table_number);
        let logs = numbers(file_names::segment_number);
        let salt = salt_of(folder, &tables, &logs, manifest.as_ref())?;
        let manifest = manifest.filter(|manifest| manifest.salt == salt);
        let seed = manifest.as_ref().map(|manifest| manifest.seed);
        let mut damaged = Self { folder, salt, seed, parts: Vec::new() };
        let table = |number, last_sequence| Part { is_log: false, last_sequence, number };
        let log = |number, last_sequence| Part { is_log: true, last_sequence, number };
        if let Some(manifest) = manifest {
            let runs = manifest.runs.iter().map(|run| table(run.number, run.last_sequence));
            damaged.parts.extend(runs);
            // The log is younger than all tables.
            damaged.parts.extend(manifest.logs.iter().map(|entry| log(entry.number, u64::MAX)));
            let is_there = |part: &Part| {
                if part.is_log {
                    logs.contains(&part.number)
                } else {
                    tables.contains(&part.number)
                }
            };
            let has_more = logs.iter().any(|&number| number >= manifest.number);
            let (there, gone): (Vec<_>, Vec<_>) =
                damaged.parts.iter().partition(|part| is_there(part));
            if gone.is_empty() && !has_more {
                damaged.parts = there;
                damaged.parts.sort_unstable();
                return Ok(damaged);
            }
            for part in gone {
                let name = if part.is_log {
                    file_names::segment(part.number)
                } else {
                    file_names::table(part.number)
                };
                damages.push(Damage::new(&name, 0, "the file is missing"));
            }
        }
        damaged.parts.clear();
        for number in tables {
            damaged.parts.push(table(number, damaged.last_sequence(number)?));
        }
        for number in logs {
            damaged.parts.push(log(number, damaged.last_sequence_of_log(number)?));
        }
        damaged.parts.sort_unstable();
        Ok(damaged)
    }

    /// Returns the greatest sequence number of what is readable of a table.
    fn last_sequence(&self, number: u64) -> Result<u64, Error> {
        let mut last = 0;
        if let Some(table) = DamagedTable::open(self.folder, number, self.salt)? {
            table.entries(&mut Vec::new(), &mut |entry| {
                last = last.max(entry.sequence);
                Ok(())
            })?;
        }
        Ok(last)
    }

    /// Returns the greatest sequence number of what is readable of a file of the log.
    fn last_sequence_of_log(&self, number: u64) -> Result<u64, Error> {
        let opened = Segment::open_unchecked(self.folder, self.salt, number);
        let Some(file) = collect_damage(&mut Vec::new(), opened)?.flatten() else { return Ok(0) };
        let (mut last, end) = (0, file.end());
        let mut scan = Scan::new(Arc::new(file), end);
        loop {
            match scan.next() {
                Ok(Some(record)) => last = record.header.sequence,
                Ok(None) => return Ok(last),
                Err(error) => {
                    collect_damage::<()>(&mut Vec::new(), Err(error))?;
                    scan.resume()?;
                }
            }
        }
    }

    /// Applies the newest version of each key of a table.
    fn read_table(&self, number: u64, done: &mut Progress<'_>) -> Result<(), Error> {
        let Some(table) = DamagedTable::open(self.folder, number, self.salt)? else {
            return Ok(());
        };
        let mut damages = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        table.entries(&mut damages, &mut |entry| {
            done.report.records += 1;
            if last.as_deref() == Some(entry.key) {
                return Ok(());
            }
            last = Some(memory::copy_of(entry.key)?);
            done.apply(entry.key, entry.value)
        })?;
        if let Some(seed) = self.seed.filter(|_| !damages.is_empty()) {
            done.lost.extend(table.lost_hashes(seed)?);
        }
        done.report.damages.append(&mut damages);
        Ok(())
    }

    /// Applies all sound records of a file of the log again.
    fn read_log(&self, number: u64, done: &mut Progress<'_>) -> Result<(), Error> {
        let damages = &mut done.report.damages;
        let checked = match Segment::open(self.folder, self.salt, number) {
            Err(Error::OtherStore { file }) => {
                damages.push(Damage::new(&file, 0, "it belongs to another store"));
                return Ok(());
            }
            checked => collect_damage(damages, checked)?,
        };
        let file = match checked {
            Some(file) => Some(file),
            None => Segment::open_unchecked(self.folder, self.salt, number)?,
        };
        let Some(file) = file.map(Arc::new) else { return Ok(()) };
        let mut scan = Scan::new(file.clone(), file.end());
        loop {
            match scan.next() {
                Ok(Some(record)) if record.header.kind == Kind::Mark => {}
                Ok(Some(record)) => {
                    let entry = entry_of(&file, &record)?;
                    done.report.records += 1;
                    done.apply(entry.key(), entry.value())?;
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    collect_damage::<()>(&mut done.report.damages, Err(error))?;
                    scan.resume()?;
                }
            }
        }
    }
}

/// Returns the salt of the store: that of the manifest, if any file has it or there is none;
/// otherwise that of a file.
fn salt_of(
    folder: &dyn Folder,
    tables: &[u64],
    logs: &[u64],
    manifest: Option<&Manifest>,
) -> Result<u64, Error> {
    let mut salts = Vec::new();
    for &number in logs {
        let salt = collect_damage(&mut Vec::new(), Segment::salt_in(folder, number))?;
        salts.extend(salt.flatten());
    }
    for &number in tables {
        salts.extend(
            collect_damage(&mut Vec::new(), DamagedTable::salt_in(folder, number))?.flatten(),
        );
    }
    let named = manifest.map(|manifest| manifest.salt);
    let fitting = named.filter(|salt| salts.is_empty() || salts.contains(salt));
    Ok(fitting.or(salts.first().copied()).unwrap_or(0))
}
