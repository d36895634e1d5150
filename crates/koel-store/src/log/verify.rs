//! Reading and checking everything in a store.
//!
//! Checks every record of every segment against its checksum, the order of the sequence numbers,
//! the manifest on disk, and the index: it has each live record and nothing else. Unlike opening,
//! it goes on after damage, at the next sound record, so that one pass lists all damage.
//!
//! **Salvage** writes the readable records of a store that damage keeps from opening into another
//! store.
//!
//! Every sound record counts, wherever it is: its checksum covers its position, so it belongs
//! there. The records are applied again in log order: values are put, tombstones delete. So the
//! last readable record of each key wins, and the new store is an ordinary one. The folder of the
//! damaged store is not changed.
//!
//! * **Which segments, in which order.** Those that the manifest names. Without a fitting manifest
//!   (none, a damaged one, one of another store, or an older one) all segments, ordered by the
//!   sequence number of their first sound record. After a crash during a compaction some of these
//!   may be old; then records that were deleted and compacted away can come back.
//! * **What is lost.** Bytes between sound records are reported as damage. If a sound hint tells
//!   which keys had records there, their older values are not taken for the last ones: those keys
//!   are left out and counted. Without such a hint a key may get an older value, or come back after
//!   its deletion.
//! * **Batches** may be recovered in part, and so may unsynced writes after a torn end.
//!
//! Cost: reads everything once, writes every record once, and compacts the result.

use std::collections::HashSet;
use std::sync::Arc;

use super::hint::{self, Note};
use super::iter::{Keys, View};
use super::pick::Policy;
use super::read::ValueReader;
use super::store::Store;
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::files::Folder;
use crate::kernel::log_end::Durability;
use crate::kernel::manifest::{LogEntry, Manifest};
use crate::kernel::record::{self, Kind, Position};
use crate::kernel::salvage::{DamagedStore, LostKeys, SalvageReport, VerifyReport, check_manifest};
use crate::kernel::scan::{Found, Record, Scan};
use crate::kernel::segment::{SIZES, Segment};
use crate::kernel::store_files::{MANIFEST, StoreKind};

impl Store {
    pub(super) fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<VerifyReport, Error> {
        let view = View::new(self);
        let (mut report, mut live) = (VerifyReport::default(), 0);
        collect_damage(&mut report.damages, self.check_manifest())?;
        let total = view.segments.iter().map(|(_, end)| end).sum();
        for (segment, end) in &view.segments {
            let before = report.bytes;
            let VerifyReport { records, bytes, damages, .. } = &mut report;
            Scan::new(segment.clone(), *end).each_sound(damages, |found| {
                let Found::Record(record) = found else { return Ok(()) };
                *records += 1;
                live += u64::from(view.is_live(segment, &record));
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
        report.live = Some(live);
        if report.damages.is_empty() && live != view.keys {
            let what = "the index does not match the records of the log; open the store again";
            report.damages.push(Damage::new("index", 0, what));
        }
        Ok(report)
    }

    /// Checks that the manifest on disk is the one of this store.
    fn check_manifest(&self) -> Result<(), Error> {
        // No other thread changes the manifest while the lock is held.
        let _end = self.log.end();
        check_manifest(&*self.folder, StoreKind::Log, &self.log.poison, |manifest| {
            let named = manifest.logs.iter().map(|entry| entry.number);
            (manifest.salt, manifest.seed, manifest.segment_bytes)
                == (self.salt, self.seed, self.segment_bytes)
                && named.eq(self.segments.all().iter().map(|segment| segment.number))
        })
    }
}

impl Store {
    pub(super) fn salvage(
        &self,
        folder: &dyn Folder,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<SalvageReport, Error> {
        let mut report = SalvageReport::default();
        let damaged = DamagedStore::inspect(StoreKind::Log, folder, &mut report.damages)?;
        let mut lost = LostKeys::new(damaged.manifest.as_ref());
        let segments = segments_of(&damaged, &mut report.damages)?;
        let total = segments.iter().map(|entry| entry.end).sum();
        let mut passed = 0;
        for entry in &segments {
            self.salvage_segment(&damaged, entry, &mut report, &mut lost, |at| {
                progress(passed + at, total);
            })?;
            passed += entry.end;
            progress(passed, total);
        }
        // The older values of keys whose last record is unreadable.
        for key in Keys::new(self).take_while(|_| !lost.is_empty()) {
            let key = key?;
            if lost.has(&key) {
                self.delete(&key, Durability::None)?;
            }
        }
        report.lost = lost.values();
        self.log.sync()?;
        self.seal_for_compaction()?;
        self.compact(Policy::THOROUGH, &mut |_, _| true)?;
        Ok(report)
    }

    /// Applies all sound records of a segment again.
    fn salvage_segment(
        &self,
        damaged: &DamagedStore<'_>,
        entry: &LogEntry,
        report: &mut SalvageReport,
        lost: &mut LostKeys,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let SalvageReport { records, damages, .. } = report;
        let notes = notes_of(damaged, entry, lost);
        let Some(segment) = open(damaged, entry, damages)? else {
            lost.add(notes_between(&notes, 0, u64::MAX));
            return Ok(());
        };
        Scan::new(segment.clone(), segment.end()).each_sound(damages, |found| {
            match found {
                Found::Record(record) if record.header.kind == Kind::Mark => {}
                Found::Record(record) => {
                    self.apply_again(&segment, &record)?;
                    lost.found(record.key());
                    *records += 1;
                    progress(record.end());
                }
                Found::Damage(bytes) => lost.add(notes_between(&notes, bytes.start, bytes.end)),
            }
            Ok(())
        })?;
        // Records that were cut off.
        lost.add(notes_between(&notes, segment.end(), u64::MAX));
        Ok(())
    }

    /// Carries out what a record says.
    fn apply_again(&self, segment: &Arc<Segment>, record: &Record<'_>) -> Result<(), Error> {
        let key = record.key();
        match record.header.kind {
            Kind::Value => self.put(key, record.value(), Durability::None),
            Kind::Large => {
                let mut value = ValueReader::new(segment, record)?;
                self.write_from(key, value.len(), &mut value, Durability::None)
            }
            Kind::Tombstone => self.delete(key, Durability::None).map(drop),
            // No log store writes ranges.
            Kind::Mark | Kind::Range => Ok(()),
        }
    }
}

/// Returns the segments in log order. Each ends where the manifest says, or where its file does if
/// that is later, but not beyond the size that a segment can have.
fn segments_of(
    damaged: &DamagedStore<'_>,
    damages: &mut Vec<Damage>,
) -> Result<Vec<LogEntry>, Error> {
    let mut segments = match &damaged.manifest {
        Some(manifest) if !is_newer_than(damaged, manifest)? => manifest.logs.clone(),
        manifest => {
            if manifest.is_some() {
                let what = "it does not belong to the segments in the folder";
                damages.push(Damage::new(MANIFEST, 0, what));
            }
            let first =
                |&number| Ok((first_sequence(damaged, number)?.unwrap_or(u64::MAX), number));
            let mut firsts: Vec<_> =
                damaged.logs.iter().map(first).collect::<Result<_, Error>>()?;
            firsts.sort_unstable();
            let entry = |(_, number)| LogEntry { number, ..LogEntry::default() };
            firsts.into_iter().map(entry).collect()
        }
    };
    for entry in &mut segments {
        let file_end = damaged.open_unchecked(entry.number)?.map_or(0, |segment| segment.end());
        entry.end = entry.end.max(file_end).min(*SIZES.end());
    }
    Ok(segments)
}

/// Returns whether segments that the manifest does not name continue those that it names, or
/// replace some of them.
fn is_newer_than(damaged: &DamagedStore<'_>, manifest: &Manifest) -> Result<bool, Error> {
    let named: HashSet<u64> = manifest.logs.iter().map(|entry| entry.number).collect();
    let there = damaged.logs.iter().filter(|number| named.contains(number)).count();
    for &number in damaged.logs.iter().filter(|number| !named.contains(number)) {
        let first = first_sequence(damaged, number)?;
        if first.is_some_and(|first| there < named.len() || first >= manifest.sequence) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the sequence number of the first sound record of a segment.
fn first_sequence(damaged: &DamagedStore<'_>, number: u64) -> Result<Option<u64>, Error> {
    let Some(segment) = damaged.open_unchecked(number)? else { return Ok(None) };
    let end = segment.end().min(*SIZES.end());
    let mut scan = Scan::new(Arc::new(segment), end);
    let damage = match scan.next() {
        Ok(next) => return Ok(next.map(|record| record.header.sequence)),
        Err(error) => error,
    };
    scan.resume(&damage)?;
    Ok(scan.next()?.map(|record| record.header.sequence))
}

/// Opens a segment, and lists what is wrong with it as a whole.
fn open(
    damaged: &DamagedStore<'_>,
    entry: &LogEntry,
    damages: &mut Vec<Damage>,
) -> Result<Option<Arc<Segment>>, Error> {
    let opened = damaged.open((entry.number, entry.end), damages)?;
    if let Some(segment) = opened.as_ref().filter(|segment| segment.end() > entry.end) {
        let what = "the file is longer than any segment";
        damages.push(Damage::new(&segment.name, entry.end, what));
        segment.set_end(entry.end);
    }
    Ok(opened)
}

/// Returns the notes in the hint of a segment, none without a sound hint or the seed of its hashes.
fn notes_of(damaged: &DamagedStore<'_>, entry: &LogEntry, lost: &LostKeys) -> Vec<Note> {
    let end = Position { salt: damaged.salt, segment: entry.number, offset: entry.end };
    let hint = lost.seed().and_then(|_| hint::read(damaged.folder, end, u64::MAX));
    hint.map_or_else(Vec::new, |hint| hint.notes.iter().collect())
}

/// Returns the hashes of the records that start at `from` or later and before `to`, and whether
/// each is a value.
fn notes_between(notes: &[Note], from: u64, to: u64) -> impl Iterator<Item = (u64, bool)> {
    let at = |offset| notes.partition_point(|note| note.offset() < offset);
    notes[at(from)..at(to)].iter().map(|note| (note.hash, !note.is_tombstone()))
}
