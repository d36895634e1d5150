//! What ends things: flushing everything, merging everything, closing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::store::Store;
use crate::Error;
use crate::kernel::lock::lock;

/// How long to wait for a merge that is under way before looking again.
const PATIENCE: Duration = Duration::from_millis(100);
/// A memtable that is full to this part is not flushed when the store is closed.
const SMALL_REST: u64 = 16;

impl Store {
    /// Writes everything in memory into tables.
    pub(super) fn flush(&self) -> Result<(), Error> {
        self.log.poison.check()?;
        self.seal_active(&mut self.log.end())?;
        self.flush_sealed()?;
        if !self.options.background {
            self.merge_due()?;
        }
        Ok(())
    }

    /// Flushes, and merges everything into one run.
    pub(super) fn compact(&self) -> Result<(), Error> {
        self.log.poison.check()?;
        self.seal_active(&mut self.log.end())?;
        self.flush_sealed()?;
        while !self.merge_all()? {
            self.threads.wait_for_progress(PATIENCE);
        }
        Ok(())
    }

    /// Flushes most of what is in memory, makes everything durable, and writes a manifest with
    /// exact ends.
    pub(super) fn close(&self) -> Result<(), Error> {
        if self.log.poison.check().is_ok() {
            self.flush_to_close();
        }
        if let Some(file) = lock(&self.prepared).take() {
            self.remove_unnamed(&file.name);
        }
        self.log.close(|end| {
            let mut manifest = lock(&self.manifest);
            if manifest.clean {
                return;
            }
            let mut next = manifest.clone();
            if let (Some(last), Some(file)) = (next.logs.last_mut(), &end.file) {
                last.end = file.end();
            }
            next.clean = true;
            next.sequence = end.sequence;
            next.number = self.next_number.load(Ordering::Relaxed);
            if next.store(&*self.folder, &self.log.poison).is_ok() {
                end.announced = false;
                *manifest = next;
            }
        })
    }

    /// Flushes what would take long to replay at the next opening. A few entries stay in the log:
    /// otherwise each program that puts one key would leave a table.
    fn flush_to_close(&self) {
        let is_much = self.state.load().active.bytes() > self.options.memtable_bytes / SMALL_REST;
        let sealed = if is_much { self.seal_active(&mut self.log.end()) } else { Ok(()) };
        // What cannot be flushed stays in the log.
        drop(sealed.and_then(|()| self.flush_sealed()));
    }
}
