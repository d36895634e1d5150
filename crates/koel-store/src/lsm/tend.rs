//! Tending the guide: it follows the runs, in a thread of its own.
//!
//! A guide is made without any lock, which takes 2 ms for each million keys that it has and 0.1 us
//! for each key that is new to it, and is put into the version of that moment. Runs that came
//! meanwhile are asked by every read until the next round. What fails leaves the guide as it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::guide::{Guide, HashedKeys};
use super::store::{Store, stopped};
use super::table::Table;
use super::version::{State, Version};
use crate::Error;
use crate::kernel::threads::{Signal, Wakeup, lock};

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

    /// Makes the guide follow the runs, if there is one or one was asked for.
    pub(super) fn tend_guide(&self) -> Result<(), Error> {
        let mut anew = self.threads.guide_missing.swap(false, Ordering::Relaxed);
        loop {
            let before = self.state.load().version.clone();
            let Some(next) = self.next_guide(&before, anew)? else { return Ok(()) };
            anew = false;
            let next = Arc::new(next);
            let _one_at_a_time = lock(&self.versions);
            self.state.update(|state| {
                let version = state.version.with_guide(next.clone(), before.merges.len());
                State { version: Arc::new(version), ..state.clone() }
            });
        }
    }

    /// Returns the guide to the runs of a version; `None` if it has it, or is to have none.
    fn next_guide(&self, version: &Version, anew: bool) -> Result<Option<Guide>, Error> {
        let Some(options) = self.options.guide_options() else { return Ok(None) };
        let hashes = |table| Hashes { table, stop: &self.threads.guide_due };
        let runs: Vec<_> = version.runs.iter().map(|run| hashes(&*run.table)).collect();
        match &version.guide {
            Some(guide) if !anew => guide.following(&runs, &version.merges),
            None if !anew => Ok(None),
            _ => Guide::build(&runs, options).map(Some),
        }
    }
}
