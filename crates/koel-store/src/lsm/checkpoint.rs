//! Checkpoints (`kernel/checkpoint.rs`): tables never change and are shared; the files of the log
//! are copied up to their end.

use std::sync::atomic::Ordering;

use super::store::Store;
use crate::Error;
use crate::kernel::checkpoint::Checkpoint;
use crate::kernel::files::Folder;
use crate::kernel::store_files::{SEGMENT, TABLE};
use crate::kernel::threads::lock;

impl Store {
    /// Copies the store as it is now into an empty folder.
    pub(super) fn checkpoint(&self, to: &(dyn Folder + 'static)) -> Result<(), Error> {
        let mut copy = Checkpoint::start(to)?;
        let end = self.log.end();
        if self.log.poison.has_failed() {
            self.log.poison.check()?;
        }
        // Nobody removes a file that it names while this lock is held.
        let current = lock(&self.manifest);
        let mut manifest = current.clone();
        if let (Some(last), Some(log)) = (manifest.logs.last_mut(), &end.file) {
            last.end = log.end();
        }
        manifest.sequence = end.sequence;
        drop(end);
        manifest.number = self.next_number.load(Ordering::Relaxed);
        for run in &manifest.runs {
            let name = TABLE.name(run.number);
            if !copy.link(&*self.folder, &name)? {
                self.copy_later(&mut copy, &name, run.bytes)?;
            }
        }
        for log in &manifest.logs {
            self.copy_later(&mut copy, &SEGMENT.name(log.number), log.end)?;
        }
        drop(current);
        copy.finish(manifest, self.options.seed)
    }

    /// Opens a file that is to be copied.
    fn copy_later(&self, copy: &mut Checkpoint<'_>, name: &str, len: u64) -> Result<(), Error> {
        let file = self.folder.open(name).map_err(Error::io("open", name))?;
        copy.copy_later(name, file, len);
        Ok(())
    }
}
