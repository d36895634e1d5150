//! Reading and checking everything in a store.
//!
//! Checks every record of every segment against its checksum, the order of the sequence numbers,
//! the manifest on disk, and the index: it has each live record and nothing else. Unlike opening,
//! it goes on after damage, at the next sound record, so that one pass lists all damage.

use super::iter::View;
use super::store::Store;
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::manifest::Manifest;
use crate::kernel::record;
use crate::kernel::scan::{Found, Scan};
use crate::kernel::store_files::{MANIFEST, StoreKind};

/// What [`LogStore::verify`](super::LogStore::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogVerifyReport {
    /// The number of sound records, live or not.
    pub records: u64,
    /// The number of records that are the value of a key.
    pub live: u64,
    /// The bytes that were read.
    pub bytes: u64,
    /// All damage; empty if the store is sound.
    pub damages: Vec<Damage>,
}

impl Store {
    pub(super) fn verify(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<LogVerifyReport, Error> {
        let view = View::new(self);
        let mut report = LogVerifyReport::default();
        collect_damage(&mut report.damages, self.check_manifest())?;
        let total = view.segments.iter().map(|(_, end)| end).sum();
        for (segment, end) in &view.segments {
            let before = report.bytes;
            let LogVerifyReport { records, live, bytes, damages } = &mut report;
            Scan::new(segment.clone(), *end).each_sound(damages, |found| {
                let Found::Record(record) = found else { return Ok(()) };
                *records += 1;
                *live += u64::from(view.is_live(segment, &record));
                let step = *bytes / record::BLOCK as u64;
                *bytes += record.header.size();
                if *bytes / record::BLOCK as u64 != step {
                    progress(*bytes, total);
                }
                Ok(())
            })?;
            report.bytes = before + end;
            progress(report.bytes, total);
        }
        if report.damages.is_empty() && report.live != view.keys {
            let what = "the index does not match the records of the log; open the store again";
            report.damages.push(Damage::new("index", 0, what));
        }
        Ok(report)
    }

    /// Checks that the manifest on disk is the one of this store. After a failed write it may be
    /// the previous or the next one.
    fn check_manifest(&self) -> Result<(), Error> {
        // No other thread changes the manifest while the lock is held.
        let _end = self.log.end();
        let manifest = Manifest::load_existing(StoreKind::Log, &*self.folder)?;
        let segments = self.segments.all();
        let named = manifest.logs.iter().map(|entry| entry.number);
        let is_own = (manifest.salt, manifest.seed, manifest.segment_bytes)
            == (self.salt, self.seed, self.segment_bytes)
            && named.eq(segments.iter().map(|segment| segment.number));
        if is_own || self.log.poison.has_failed() {
            Ok(())
        } else {
            Err(Error::damaged(MANIFEST, 0, "it does not name the segments in use"))
        }
    }
}
