//! Checkpoints (`kernel/checkpoint.rs`): sealed segments never change and are shared, with their
//! hints; the active one is copied up to its end.
//!
//! The segments and the end are taken under the lock of the end of the log: every write is in the
//! copy as a whole or not at all. A segment that is compacted meanwhile stays in the folder as long
//! as the copy has it (`kernel/pool.rs`), so even links are made without that lock.
//!
//! The copy has no hint of its last segment. Opening it scans that one.

use super::store::Store;
use crate::Error;
use crate::kernel::checkpoint::Checkpoint;
use crate::kernel::files::Folder;
use crate::kernel::store_files::HINT;

impl Store {
    /// Copies the store as it is now into an empty folder.
    pub(super) fn checkpoint(&self, to: &(dyn Folder + 'static)) -> Result<(), Error> {
        let mut copy = Checkpoint::start(to)?;
        let (segments, manifest) = {
            let end = self.log.end();
            if self.log.poison.has_failed() {
                self.log.poison.check()?;
            }
            let segments = self.segments.all();
            let manifest = self.manifest(&end, &segments, true);
            (segments, manifest)
        };
        let last = segments.len().saturating_sub(1);
        for (place, (segment, entry)) in segments.iter().zip(&manifest.logs).enumerate() {
            if place == last || !copy.link(&*self.folder, &segment.name)? {
                copy.copy_later(&segment.name, segment.file.clone(), entry.end);
            }
            if place < last {
                self.add_hint(&mut copy, segment.number);
            }
        }
        copy.finish(manifest, self.fixed_seed)
    }

    /// Adds the hint of a sealed segment, if there is one. Without it the copy is sound, but slower
    /// to open.
    fn add_hint(&self, copy: &mut Checkpoint<'_>, number: u64) {
        let name = HINT.name(number);
        if let Ok(false) = copy.link(&*self.folder, &name)
            && let Ok(file) = self.folder.open(&name)
            && let Ok(len) = file.len()
        {
            copy.copy_later(&name, file, len);
        }
    }
}
