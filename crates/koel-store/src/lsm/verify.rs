//! Reading and checking everything in a store.
//!
//! Checks the manifest on disk, every record of the log, every byte of every table (its order, its
//! index, its hashes and counts), and that the guide knows every key. It goes on after damage, so
//! that one pass lists all of it.

use std::sync::Arc;

use super::store::Store;
use super::table;
use super::version::State;
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::manifest::Manifest;
use crate::kernel::scan::{Found, Scan};
use crate::kernel::segment::{FIRST_RECORD, Segment};
use crate::kernel::store_files::{MANIFEST, StoreKind, TABLE};
use crate::kernel::threads::lock;

/// What [`LsmStore::verify`](super::LsmStore::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LsmVerifyReport {
    /// The number of sound entries of tables and records of the log.
    pub records: u64,
    /// The bytes that were read.
    pub bytes: u64,
    /// All damage; empty if the store is sound.
    pub damages: Vec<Damage>,
}

impl Store {
    pub(super) fn verify(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<LsmVerifyReport, Error> {
        let mut report = LsmVerifyReport::default();
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
    fn forgive_removed(&self, number: u64, known: usize, report: &mut LsmVerifyReport) {
        if report.damages.len() > known && !lock(&self.manifest).names(number) {
            report.damages.truncate(known);
        }
    }

    /// Checks every record of a file of the log.
    fn check_log(&self, number: u64, end: u64, report: &mut LsmVerifyReport) -> Result<(), Error> {
        let opened = Segment::open(&*self.folder, self.salt, number);
        let Some(file) = collect_damage(&mut report.damages, opened)? else { return Ok(()) };
        let (file, len) = (Arc::new(file), end);
        if file.end() < len {
            let what = "the file is cut short";
            report.damages.push(Damage::new(&file.name, file.end(), what));
        }
        let LsmVerifyReport { records, damages, .. } = report;
        Scan::new(file.clone(), len.min(file.end())).each_sound(damages, |found| {
            *records += u64::from(matches!(found, Found::Record(_)));
            Ok(())
        })
    }

    /// Checks that the manifest on disk is the one of this store. After a failed write it may be
    /// the previous or the next one.
    fn check_manifest(&self) -> Result<(), Error> {
        // No other thread changes it while the lock is held.
        let expected = lock(&self.manifest);
        let found = Manifest::load_existing(StoreKind::Lsm, &*self.folder)?;
        if found == *expected || self.log.poison.has_failed() {
            Ok(())
        } else {
            Err(Error::damaged(MANIFEST, 0, "it does not name the files in use"))
        }
    }
}

/// Checks that the guide names each run for each of its keys.
fn check_guide(state: &State) -> Result<(), Error> {
    for run in state.version.runs.iter().filter(|run| run.is_guided()) {
        let (mut hashes, mut some) = (run.table.hashes(), Vec::new());
        while hashes.next(&mut some)? {
            if !some.iter().all(|&hash| run.is_in(state.version.ids(hash))) {
                let what = "the guide in memory misses a key of it; open the store again";
                return Err(Error::damaged(&TABLE.name(run.number()), 0, what));
            }
        }
    }
    Ok(())
}
