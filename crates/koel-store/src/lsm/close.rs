//! What ends things: flushing everything, merging everything, closing.

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
        self.poison.check()?;
        self.seal_active(&mut lock(&self.writer))?;
        self.flush_sealed()?;
        if !self.options.background {
            self.merge_due()?;
        }
        Ok(())
    }

    /// Flushes, and merges everything into one run.
    pub(super) fn compact(&self) -> Result<(), Error> {
        self.poison.check()?;
        self.seal_active(&mut lock(&self.writer))?;
        self.flush_sealed()?;
        while !self.merge_all()? {
            self.threads.wait_for_progress(PATIENCE);
        }
        Ok(())
    }

    /// Flushes most of what is in memory, makes everything durable, and writes a manifest with exact
    /// ends. That it cannot be written, as on a full disk, is no error: the next opening finds the
    /// ends as after a crash.
    pub(super) fn close(&self) -> Result<(), Error> {
        if self.poison.is_read_only() {
            return Ok(());
        }
        self.poison.check()?;
        self.flush_to_close();
        self.sync()?;
        let mut writer = lock(&self.writer);
        let mut manifest = lock(&self.manifest);
        if manifest.clean {
            return Ok(());
        }
        let mut next = manifest.clone();
        if let (Some(last), Some(log)) = (next.logs.last_mut(), &writer.log) {
            last.end = log.end();
        }
        next.clean = true;
        next.sequence = writer.sequence;
        next.number = self.next_number.load(std::sync::atomic::Ordering::Relaxed);
        if next.store(&*self.folder).is_ok() {
            writer.announced = false;
            *manifest = next;
        }
        Ok(())
    }

    /// Flushes what would take long to replay at the next opening. A few entries stay in the log:
    /// otherwise each program that puts one key would leave a table.
    fn flush_to_close(&self) {
        let is_much = self.state.load().active.bytes() > self.options.memtable_bytes / SMALL_REST;
        let sealed = if is_much { self.seal_active(&mut lock(&self.writer)) } else { Ok(()) };
        // What cannot be flushed stays in the log.
        drop(sealed.and_then(|()| self.flush_sealed()));
    }
}
