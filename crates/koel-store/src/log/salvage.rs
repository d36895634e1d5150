//! Salvage: the readable records of a store that damage keeps from opening, written into another
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

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::hint::{self, Note};
use super::iter::Keys;
use super::manifest::{Entry, Manifest};
use super::pick::Policy;
use super::store::{Store, hash};
use super::value::ValueReader;
use crate::Error;
use crate::error::FOLDER;
use crate::kernel::damage::{Damage, collect_damage};
use crate::kernel::durability::Durability;
use crate::kernel::file_names::{self, MANIFEST};
use crate::kernel::files::Folder;
use crate::kernel::record::{Kind, Position};
use crate::kernel::scan::{Record, Scan};
use crate::kernel::segment::{SIZES, Segment};

/// What [`LogStore::salvage`](super::LogStore::salvage) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSalvageReport {
    /// The number of sound records that were read, live or not.
    pub records: u64,
    /// The number of keys that were left out because a hint tells that their last value is
    /// unreadable.
    pub lost: u64,
    /// What could not be read; empty if the store was sound.
    pub damages: Vec<Damage>,
}

/// What there is of a damaged store.
struct DamagedStore<'a> {
    folder: &'a dyn Folder,
    salt: u64,
    /// The seed of the hash of keys in hints; unknown without a manifest.
    seed: Option<u64>,
    /// In log order. Each ends where the manifest says, or where its file does if that is later.
    segments: Vec<Entry>,
}

/// Keys whose last record is unreadable, by their hash in the damaged store, and whether that
/// record is a value.
type Unreadable = HashMap<u64, bool>;

impl Store {
    pub(super) fn salvage(
        &self,
        folder: &dyn Folder,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<LogSalvageReport, Error> {
        let mut report = LogSalvageReport::default();
        let damaged = DamagedStore::inspect(folder, &mut report.damages)?;
        let total = damaged.segments.iter().map(|entry| entry.end).sum();
        let (mut unreadable, mut passed) = (Unreadable::new(), 0);
        for entry in &damaged.segments {
            self.salvage_segment(&damaged, entry, &mut report, &mut unreadable, |at| {
                progress(passed + at, total);
            })?;
            passed += entry.end;
            progress(passed, total);
        }
        self.delete_outdated(&damaged, &unreadable)?;
        report.lost = unreadable.values().filter(|&&is_value| is_value).count() as u64;
        self.log.sync()?;
        self.seal_for_compaction()?;
        self.compact(Policy::THOROUGH, &mut |_, _| true)?;
        Ok(report)
    }

    /// Applies all sound records of a segment again.
    fn salvage_segment(
        &self,
        damaged: &DamagedStore<'_>,
        entry: &Entry,
        report: &mut LogSalvageReport,
        unreadable: &mut Unreadable,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let notes = damaged.notes(entry);
        let Some(segment) = damaged.open(entry, &mut report.damages)? else {
            unreadable.extend(notes_between(&notes, 0, u64::MAX));
            return Ok(());
        };
        let mut scan = Scan::new(segment.clone(), segment.end());
        loop {
            match scan.next() {
                Ok(Some(record)) if record.header.kind == Kind::Mark => {}
                Ok(Some(record)) => {
                    self.apply_again(&segment, &record)?;
                    if let Some(seed) = damaged.seed {
                        unreadable.remove(&hash(seed, record.key()));
                    }
                    report.records += 1;
                    progress(scan.offset());
                }
                Ok(None) => break,
                Err(error) => {
                    collect_damage::<()>(&mut report.damages, Err(error))?;
                    let from = scan.offset();
                    scan.resume()?;
                    unreadable.extend(notes_between(&notes, from, scan.offset()));
                }
            }
        }
        // Records that were cut off.
        unreadable.extend(notes_between(&notes, segment.end(), u64::MAX));
        Ok(())
    }

    /// Carries out what a record says.
    fn apply_again(&self, segment: &Arc<Segment>, record: &Record<'_>) -> Result<(), Error> {
        let key = record.key();
        match record.header.kind {
            Kind::Value => self.put(key, record.value(), Durability::None),
            Kind::Large => {
                let mut value = ValueReader::new(segment, record);
                self.write_from(key, value.len(), &mut value, Durability::None)
            }
            Kind::Tombstone => self.delete(key, Durability::None).map(drop),
            Kind::Mark => Ok(()),
        }
    }

    /// Deletes the older values of keys whose last record is unreadable.
    fn delete_outdated(
        &self,
        damaged: &DamagedStore<'_>,
        unreadable: &Unreadable,
    ) -> Result<(), Error> {
        let Some(seed) = damaged.seed.filter(|_| !unreadable.is_empty()) else {
            return Ok(());
        };
        for key in Keys::new(self) {
            let key = key?;
            if unreadable.contains_key(&hash(seed, &key)) {
                self.delete(&key, Durability::None)?;
            }
        }
        Ok(())
    }
}

impl<'a> DamagedStore<'a> {
    /// Finds the segments and their order, and lists what is wrong with the manifest.
    fn inspect(folder: &'a dyn Folder, damages: &mut Vec<Damage>) -> Result<Self, Error> {
        let names = folder.list().map_err(Error::io("list", FOLDER))?;
        let present: Vec<u64> =
            names.iter().filter_map(|name| file_names::segment_number(name)).collect();
        let missing = || Error::damaged(MANIFEST, 0, "the file is missing");
        let manifest = Manifest::load(folder).and_then(|found| found.ok_or_else(missing));
        let manifest = collect_damage(damages, manifest)?;
        let salt = salt_of(folder, &present, manifest.as_ref())?;
        let mut damaged = Self { folder, salt, seed: None, segments: Vec::new() };
        if let Some(manifest) = manifest {
            let is_own = manifest.salt == salt;
            damaged.seed = is_own.then_some(manifest.seed);
            if is_own && !damaged.is_newer_than(&manifest, &present)? {
                damaged.segments = manifest.segments;
                return damaged.with_file_ends();
            }
            let what = "it does not belong to the segments in the folder";
            damages.push(Damage::new(MANIFEST, 0, what));
        }
        damaged.segments = damaged.in_sequence_order(&present)?;
        damaged.with_file_ends()
    }

    /// Returns whether segments that the manifest does not name continue those that it names, or
    /// replace some of them.
    fn is_newer_than(&self, manifest: &Manifest, present: &[u64]) -> Result<bool, Error> {
        let named: HashSet<u64> = manifest.segments.iter().map(|entry| entry.number).collect();
        let there = present.iter().filter(|number| named.contains(number)).count();
        for &number in present.iter().filter(|number| !named.contains(number)) {
            let first = self.first_sequence(number)?;
            if first.is_some_and(|first| there < named.len() || first >= manifest.sequence) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn in_sequence_order(&self, present: &[u64]) -> Result<Vec<Entry>, Error> {
        let mut firsts = Vec::with_capacity(present.len());
        for &number in present {
            firsts.push((self.first_sequence(number)?.unwrap_or(u64::MAX), number));
        }
        firsts.sort_unstable();
        Ok(firsts.into_iter().map(|(_, number)| Entry { number, ..Entry::default() }).collect())
    }

    /// Returns the sequence number of the first sound record of a segment.
    fn first_sequence(&self, number: u64) -> Result<Option<u64>, Error> {
        let Some(segment) = open_unchecked(self.folder, self.salt, number)? else {
            return Ok(None);
        };
        let end = segment.end().min(*SIZES.end());
        let mut scan = Scan::new(Arc::new(segment), end);
        if let Ok(next) = scan.next() {
            return Ok(next.map(|record| record.header.sequence));
        }
        scan.resume()?;
        Ok(scan.next()?.map(|record| record.header.sequence))
    }

    /// Extends each segment to the end of its file, but not beyond the size that a segment can
    /// have.
    fn with_file_ends(mut self) -> Result<Self, Error> {
        for entry in &mut self.segments {
            let segment = open_unchecked(self.folder, self.salt, entry.number)?;
            let file_end = segment.map_or(0, |segment| segment.end());
            entry.end = entry.end.max(file_end).min(*SIZES.end());
        }
        Ok(self)
    }

    /// Opens a segment, and lists what is wrong with it as a whole. Returns `None` if there is
    /// nothing to read.
    fn open(
        &self,
        entry: &Entry,
        damages: &mut Vec<Damage>,
    ) -> Result<Option<Arc<Segment>>, Error> {
        let opened = match Segment::open(self.folder, self.salt, entry.number) {
            Ok(segment) => Some(segment),
            Err(Error::OtherStore { file }) => {
                damages.push(Damage::new(&file, 0, "it belongs to another store"));
                None
            }
            Err(error) => {
                collect_damage::<()>(damages, Err(error))?;
                open_unchecked(self.folder, self.salt, entry.number)?
            }
        };
        if let Some(segment) = &opened {
            let len = segment.end();
            if len < entry.end {
                damages.push(Damage::new(&segment.name, len, "the file is cut short"));
            } else if len > entry.end {
                let what = "the file is longer than any segment";
                damages.push(Damage::new(&segment.name, entry.end, what));
                segment.set_end(entry.end);
            }
        }
        Ok(opened.map(Arc::new))
    }

    /// Returns the notes in the hint of a segment, none without a sound hint.
    fn notes(&self, entry: &Entry) -> Vec<Note> {
        let end = Position { salt: self.salt, segment: entry.number, offset: entry.end };
        let hint = self.seed.and_then(|_| hint::read(self.folder, end, u64::MAX));
        hint.map_or_else(Vec::new, |hint| hint.notes.iter().collect())
    }
}

/// Opens the file of a segment, if there is one and it is a regular file.
fn open_unchecked(folder: &dyn Folder, salt: u64, number: u64) -> Result<Option<Segment>, Error> {
    let opened = Segment::open_unchecked(folder, salt, number);
    Ok(collect_damage(&mut Vec::new(), opened)?.flatten())
}

/// Returns the salt of the store: that of the manifest, if any segment has it or there is none;
/// otherwise the most frequent one.
fn salt_of(
    folder: &dyn Folder,
    present: &[u64],
    manifest: Option<&Manifest>,
) -> Result<u64, Error> {
    let mut salts = Vec::new();
    for &number in present {
        let salt = collect_damage(&mut Vec::new(), Segment::salt_in(folder, number))?;
        salts.extend(salt.flatten());
    }
    let named = manifest.map(|manifest| manifest.salt);
    if let Some(salt) = named.filter(|salt| salts.is_empty() || salts.contains(salt)) {
        return Ok(salt);
    }
    salts.sort_unstable();
    let most = salts.chunk_by(|one, other| one == other).max_by_key(|same| same.len());
    Ok(most.map_or(0, |same| same[0]))
}

/// Returns the hashes of the records that start at `from` or later and before `to`, and whether
/// each is a value.
fn notes_between(notes: &[Note], from: u64, to: u64) -> impl Iterator<Item = (u64, bool)> {
    let at = |offset| notes.partition_point(|note| note.offset() < offset);
    notes[at(from)..at(to)].iter().map(|note| (note.hash, !note.is_tombstone()))
}
