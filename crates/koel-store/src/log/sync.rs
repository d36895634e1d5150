//! Durability of the log (`kernel/durability.rs`), and closing a store.

use super::store::Store;
use crate::Error;
use crate::kernel::durability::{Durability, LogPosition};
use crate::kernel::lock::lock;

impl Store {
    /// Makes everything written so far durable.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let position = lock(&self.writer).position();
        self.wait_durable(position, Durability::Synced)
    }

    /// Returns when everything up to `position` is as durable as asked.
    pub(super) fn wait_durable(
        &self,
        position: LogPosition,
        durability: Durability,
    ) -> Result<(), Error> {
        self.commits.wait(position, durability, &self.poison, || {
            let writer = lock(&self.writer);
            (writer.active.clone(), writer.position())
        })
    }

    /// Makes everything durable, and writes a manifest with exact ends. That it cannot be written,
    /// as on a full disk, is no error: the next opening finds the ends as after a crash.
    pub(super) fn close(&self) -> Result<(), Error> {
        if self.poison.is_read_only() {
            return Ok(());
        }
        self.poison.check()?;
        self.sync()?;
        let mut writer = lock(&self.writer);
        if !writer.announced {
            return Ok(());
        }
        if let Some(active) = writer.active.clone() {
            writer.notes.write(&*self.folder, &active);
        }
        let manifest = self.manifest(&writer, &self.segments.all(), true);
        writer.announced = manifest.store(&*self.folder).is_err();
        Ok(())
    }
}
