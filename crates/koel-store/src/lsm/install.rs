//! Switching to the next version, on disk and in memory.
//!
//! The next version is made before the manifest is locked: its guide may be built anew, which takes
//! 0.1 us a key, and a write that starts a file of the log needs the manifest. Only flushes, merges
//! and ingestions wait for each other.

use std::sync::Arc;

use super::manifest::Manifest;
use super::memtable::Memtable;
use super::state::State;
use super::store::Store;
use super::version::Version;
use crate::Error;
use crate::kernel::lock::lock;

impl Store {
    /// Replaces the version by `next` of it, and the manifest by `change` of it. `flushed` is the
    /// file of the log whose memtable is a run then.
    pub(super) fn install(
        &self,
        next: impl FnOnce(&Version) -> Version,
        change: impl FnOnce(&mut Manifest),
        flushed: Option<u64>,
    ) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.versions);
        let next = Arc::new(next(&self.state.load().version));
        let mut manifest = lock(&self.manifest);
        self.change_manifest(&mut manifest, |manifest| {
            manifest.logs.retain(|log| Some(log.number) != flushed);
            change(manifest);
        })?;
        self.state.update(|state| {
            let is_left = |memtable: &&Arc<Memtable>| Some(memtable.log) != flushed;
            let sealed = state.sealed.iter().filter(is_left).cloned().collect();
            State { active: state.active.clone(), sealed, version: next }
        });
        Ok(())
    }

    /// Builds a guide for the runs of this moment, if there is none or if it is to be replaced.
    pub(super) fn build_guide(&self, replace: bool) -> Result<(), Error> {
        let Some(options) = self.options.guide_options() else { return Ok(()) };
        let before = self.state.load().version.clone();
        if before.guide.is_some() && !replace {
            return Ok(());
        }
        let mut next = before.with_new_guide(&options)?;
        // Nobody changes the runs while the lock is held.
        let _one_at_a_time = lock(&self.versions);
        let now = self.state.load().version.clone();
        let are_same =
            before.runs.iter().map(|run| run.number()).eq(now.runs.iter().map(|run| run.number()));
        if !are_same {
            next = now.with_new_guide(&options)?;
        }
        let next = Arc::new(next);
        self.state.update(|state| State { version: next, ..state.clone() });
        Ok(())
    }
}
