//! Switching to the next version, on disk and in memory.
//!
//! The guide has no part in this: it follows later (`tend.rs`). So a flush or a merge waits for the
//! manifest alone.

use std::sync::Arc;

use super::memtable::Memtable;
use super::state::State;
use super::store::Store;
use super::table::Table;
use super::version::Version;
use crate::Error;
use crate::kernel::file_names;
use crate::kernel::lock::lock;
use crate::kernel::manifest::Manifest;

impl Store {
    /// Replaces the version by `next` of it, and the manifest by `change` of it. `new` is the table
    /// that it adds, if any; it is removed after a failure. `flushed` is the file of the log whose
    /// memtable is a run then.
    pub(super) fn install(
        &self,
        next: impl FnOnce(&Version) -> Version,
        change: impl FnOnce(&mut Manifest),
        new: Option<&Arc<Table>>,
        flushed: Option<u64>,
    ) -> Result<(), Error> {
        {
            let _one_at_a_time = lock(&self.versions);
            let next = Arc::new(next(&self.state.load().version));
            let mut manifest = lock(&self.manifest);
            let changed = self.change_manifest(&mut manifest, |manifest| {
                manifest.logs.retain(|log| Some(log.number) != flushed);
                change(manifest);
            });
            if let (Err(_), Some(table)) = (&changed, new) {
                self.remove_unnamed(&file_names::table(table.info().number));
            }
            changed?;
            self.state.update(|state| {
                let is_left = |memtable: &&Arc<Memtable>| Some(memtable.log) != flushed;
                let sealed = state.sealed.iter().filter(is_left).cloned().collect();
                State { active: state.active.clone(), sealed, version: next }
            });
        }
        self.runs_changed();
        Ok(())
    }
}
