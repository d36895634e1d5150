//! Ingestion: sorted entries become a table at once, without the log and the memtable.
//!
//! All of them get one sequence number, which comes after all earlier writes and before all later
//! ones. So earlier writes are flushed first, and other writes wait until the table is there. Reads
//! go on, and see all entries or none.

use super::entry::Entry;
use super::flush::add_run;
use super::store::Store;
use super::wal::check_lengths;
use super::write::MOST_RUNS;
use crate::Error;
use crate::kernel::lock::lock;
use crate::kernel::memory;
use crate::kernel::wakeup::Signal;

impl Store {
    /// Adds sorted entries. Returns their number.
    pub(super) fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        let mut end = self.log.end();
        self.log.poison.check()?;
        self.seal_active(&mut end)?;
        self.flush_sealed()?;
        while self.state.load().version.runs.len() >= MOST_RUNS && self.merge_once()? {}
        let sequence = end.sequence;
        end.sequence += 1;
        // From here on a manifest without the table is known to be an older one.
        self.change_manifest(&mut lock(&self.manifest), |manifest| {
            manifest.sequence = end.sequence;
        })?;
        end.announced = true;
        let written = self.write_table(false, |sink| {
            let (mut count, mut last) = (0, Vec::new());
            for (key, value) in entries {
                let (key, value) = (key.as_ref(), value.as_ref());
                check_lengths(key.len() as u64, value.len() as u64)?;
                if count > 0 && *key <= *last {
                    return Err(Error::NotSorted { entry: count });
                }
                sink(Entry { key, sequence, value: Some(value) })?;
                last.clear();
                memory::reserve(&mut last, key.len())?;
                last.extend_from_slice(key);
                self.counts.user.add((key.len() + value.len()) as u64);
                count += 1;
            }
            Ok(count)
        })?;
        let Some((table, count)) = written else { return Ok(0) };
        self.counts.flushed.add(table.info().bytes);
        self.install(
            |version| version.with_run(table.clone()),
            |manifest| add_run(manifest, &table),
            Some(&table),
            None,
        )?;
        self.snapshots.publish(sequence);
        self.threads.merge_due.send(Signal::Work);
        Ok(count)
    }
}
