//! Tending the guide: it follows the runs, in a thread of its own.
//!
//! A guide is made without any lock, which takes 2 ms for each million keys that it has and 0.1 us
//! for each key that is new to it, and is put into the version of that moment. Runs that came
//! meanwhile are asked by every read until the next round. What fails leaves the guide as it was.
//!
//! **On disk** is a guide that may know fewer runs. It is read when the store is opened, and it
//! follows like any other. It is written again once the tables that it does not know have 16 times
//! its bytes, or more than half of all: so it adds 6 % to what is written, and more if entries are
//! shorter than 40 bytes. When the store is closed, tables of its own size are enough.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::guide::{Guide, GuideOptions, HashedKeys, KnownRun, Owner};
use super::store::{Store, stopped};
use super::table::Table;
use super::version::{Run, State, Version};
use crate::Error;
use crate::kernel::events::tell;
use crate::kernel::store_files::GUIDE;
use crate::kernel::threads::{Signal, Wakeup, lock};

/// The guide is written to disk when tables of this many times its bytes are new to the one there.
const TABLES: u64 = 16;
/// The same when the store is closed.
pub(super) const TABLES_AT_CLOSE: u64 = 1;

/// The hashes of a table, until the store is closed.
#[derive(Debug)]
struct Hashes<'a> {
    table: &'a Table,
    stop: &'a Wakeup,
}

impl HashedKeys for Hashes<'_> {
    fn number(&self) -> u64 {
        self.table.info().number
    }

    fn keys(&self) -> u64 {
        self.table.info().keys
    }

    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error> {
        let (mut hashes, mut piece) = (self.table.hashes(), Vec::new());
        while hashes.next(&mut piece)? && take(&piece)? {
            if self.stop.is_stopped() {
                return Err(stopped());
            }
        }
        Ok(())
    }
}

impl Store {
    /// Asks for a guide that is built from all runs.
    pub(super) fn request_guide(&self) {
        self.threads.guide_missing.store(true, Ordering::Relaxed);
        self.threads.guide_due.send(Signal::Work);
    }

    /// Lets the guide follow the runs, if there is one: in its thread, or now if there is none.
    pub(super) fn runs_changed(&self) {
        if self.options.background {
            self.threads.guide_due.send(Signal::Work);
        } else {
            // Without it reads ask more runs, which finds the same.
            drop(self.tend_guide());
        }
    }

    /// Makes the guide follow the runs, if there is one, on disk at least, or one was asked for.
    pub(super) fn tend_guide(&self) -> Result<(), Error> {
        let is_asked_for = self.threads.guide_missing.swap(false, Ordering::Relaxed);
        loop {
            let before = self.state.load().version.clone();
            let Some(next) = self.next_guide(&before, is_asked_for)? else {
                self.save_guide(TABLES);
                return Ok(());
            };
            let next = Arc::new(next);
            tell!(debug, "a new guide", pairs = next.pairs(), follows = before.guide.is_some());
            let _one_at_a_time = lock(&self.versions);
            self.state.update(|state| {
                let version = state.version.with_guide(next.clone(), before.merges.len());
                State { version: Arc::new(version), ..state.clone() }
            });
        }
    }

    /// Returns the guide to the runs of a version; `None` if it has it, or is to have none.
    fn next_guide(&self, version: &Version, is_asked_for: bool) -> Result<Option<Guide>, Error> {
        let Some(options) = self.options.guide_options() else { return Ok(None) };
        let hashes = |table| Hashes { table, stop: &self.threads.guide_due };
        let runs: Vec<_> = version.runs.iter().map(|run| hashes(&*run.table)).collect();
        if let Some(guide) = &version.guide {
            return guide.following(&runs, &version.merges);
        }
        match self.load_guide(version, options) {
            None if is_asked_for => Guide::build(&runs, options).map(Some),
            loaded => Ok(loaded),
        }
    }

    /// Returns the guide on disk, if it is sound. Removes it if not: it would be read again after
    /// each flush.
    fn load_guide(&self, version: &Version, options: GuideOptions) -> Option<Guide> {
        let mut saved = lock(&self.saved_guide);
        let loaded = Guide::load(&*self.folder, self.owner(), &known(version), options);
        let guide = loaded.ok().flatten();
        match &guide {
            Some(guide) => *saved = guided(version, guide).collect(),
            None if self.options.read_only => {}
            None => drop(self.folder.remove(GUIDE)),
        }
        guide
    }

    fn owner(&self) -> Owner {
        (self.salt, lock(&self.manifest).number)
    }

    /// Writes the guide to disk if tables of so many times its bytes are new to the one there.
    /// Without it the next opening takes longer, so a failure is none of the caller's.
    pub(super) fn save_guide(&self, tables: u64) {
        let version = self.state.load().version.clone();
        let Some(guide) = &version.guide else { return };
        let mut saved = lock(&self.saved_guide);
        let (mut new, mut all) = (0, 0);
        for run in version.runs.iter().filter(|run| run.is_guided()) {
            let bytes = run.table.info().bytes;
            all += bytes;
            new += if saved.contains(&run.number()) { 0 } else { bytes };
        }
        let is_due = new >= guide.bytes().saturating_mul(tables).min(all / 2 + 1);
        if !is_due || self.options.read_only || self.log.poison.has_failed() {
            return;
        }
        match guide.save(&*self.folder, self.owner(), &known(&version)) {
            Ok(()) => *saved = guided(&version, guide).collect(),
            Err(error) => {
                tell!(warn, "the guide was not written", reason = error.reason().as_str());
            }
        }
    }
}

fn known(version: &Version) -> Vec<KnownRun> {
    let infos = version.runs.iter().map(|run| run.table.info());
    infos.map(|info| (info.run_entry(), info.keys)).collect()
}

/// Returns the numbers of the runs that a guide knows.
fn guided<'a>(version: &'a Version, guide: &'a Guide) -> impl Iterator<Item = u64> + 'a {
    let numbers = version.runs.iter().map(Run::number);
    numbers.filter(|&number| guide.id_of(number).is_some())
}
