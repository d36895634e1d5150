//! Salvage: what can still be read of a store that damage keeps from opening, written into another one.
//!
//! Every sound record counts, wherever it is: a checksum covers the place, so what passes belongs there. The records are carried out once more, in the order of the log: values are put, tombstones delete. So the last readable record
//! of each key decides, and the other store is an ordinary one. Nothing is changed in the folder of the damaged one.
//!
//! * **Which segments, in which order.** Those that the manifest names. Without a manifest that fits (none, a damaged one, one of another store, one older than a segment it does not name) all that there are, by the sequence of their
//!   first sound record. After a crash in a compaction there may be old segments among them; then what was deleted and compacted away can come back.
//! * **What is lost.** Bytes between sound records are reported as damage. Where a sound hint tells which keys had records there, their older values are not taken for the last ones: the keys are left out, and counted. Without such a hint an
//!   older value may be what is found, or a key that was deleted.
//! * **Batches** come in the parts that can be read; so do unsynced writes behind a torn end.
//!
//! Cost: reads everything once, writes every record once, and compacts what it wrote.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use koel::KeyHasher;

use super::hint::{self, Note};
use super::iter::Keys;
use super::options::Durability;
use super::pick::Policy;
use super::store::{Store, hasher};
use super::value::ValueReader;
use super::verify::{Damage, list, listed};
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::manifest::{self, Entry, Manifest};
use crate::kernel::record::{Kind, Place};
use crate::kernel::scan::{Found, Scan};
use crate::kernel::segment::{self, Segment};

/// What [`LogStore::salvage`](super::LogStore::salvage) came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// Sound records of keys that were read, live or not.
    pub records: u64,
    /// Keys that were left out since a hint tells that their last value is among what could not be read.
    pub lost: u64,
    /// What could not be read; empty if the store was sound.
    pub damages: Vec<Damage>,
}

/// What there is of a damaged store.
struct Wreck<'a> {
    folder: &'a dyn Folder,
    salt: u64,
    /// The hash of keys, as hints have it; not known without a manifest.
    hasher: Option<KeyHasher>,
    /// In the order of the log; each ends where it should, or where its file does, if that is further.
    segments: Vec<Entry>,
}

/// Keys whose last record cannot be read, by their hash in the damaged store, and whether it is a value.
type Unread = HashMap<u64, bool>;

impl Store {
    pub(super) fn salvage(
        &self,
        folder: &dyn Folder,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Salvaged, Error> {
        let mut salvaged = Salvaged::default();
        let wreck = Wreck::survey(folder, &mut salvaged.damages)?;
        let all = wreck.segments.iter().map(|entry| entry.end).sum();
        let (mut unread, mut passed) = (Unread::new(), 0);
        for entry in &wreck.segments {
            self.take_in(&wreck, entry, &mut salvaged, &mut unread, |at| {
                progress(passed + at, all);
            })?;
            passed += entry.end;
            progress(passed, all);
        }
        self.leave_out(&wreck, &unread)?;
        salvaged.lost = unread.values().filter(|&&is_value| is_value).count() as u64;
        self.sync()?;
        self.seal_for_compaction()?;
        self.compact(Policy::THOROUGH, &mut |_, _| true)?;
        Ok(salvaged)
    }

    /// Carries out all sound records of a segment.
    fn take_in(
        &self,
        wreck: &Wreck<'_>,
        entry: &Entry,
        salvaged: &mut Salvaged,
        unread: &mut Unread,
        mut progress: impl FnMut(u64),
    ) -> Result<(), Error> {
        let notes = wreck.notes(entry);
        let Some(segment) = wreck.open(entry, &mut salvaged.damages)? else {
            unread.extend(unread_in(&notes, 0, u64::MAX));
            return Ok(());
        };
        let mut scan = Scan::new(segment.clone(), segment.end());
        loop {
            match scan.next() {
                Ok(Some(found)) if found.head.kind == Kind::Mark => {}
                Ok(Some(found)) => {
                    self.carry_out(&segment, &found)?;
                    if let Some(hasher) = wreck.hasher {
                        unread.remove(&hasher.hash(found.key()));
                    }
                    salvaged.records += 1;
                    progress(scan.offset());
                }
                Ok(None) => break,
                Err(error) => {
                    list(&mut salvaged.damages, error)?;
                    let from = scan.offset();
                    scan.resume()?;
                    unread.extend(unread_in(&notes, from, scan.offset()));
                }
            }
        }
        // What is cut off.
        unread.extend(unread_in(&notes, segment.end(), u64::MAX));
        Ok(())
    }

    /// Does once more what a record says.
    fn carry_out(&self, segment: &Arc<Segment>, found: &Found<'_>) -> Result<(), Error> {
        let key = found.key();
        match found.head.kind {
            Kind::Value => self.put(key, found.value(), Durability::None),
            Kind::Large => {
                let mut value = ValueReader::new(segment, found);
                self.write_from(key, value.len(), &mut value, Durability::None)
            }
            Kind::Tombstone => self.delete(key, Durability::None).map(drop),
            Kind::Mark => Ok(()),
        }
    }

    /// Deletes what is no more than an older value of a key whose last record cannot be read.
    fn leave_out(&self, wreck: &Wreck<'_>, unread: &Unread) -> Result<(), Error> {
        let Some(hasher) = wreck.hasher.filter(|_| !unread.is_empty()) else {
            return Ok(());
        };
        for key in Keys::new(self) {
            let key = key?;
            if unread.contains_key(&hasher.hash(&key)) {
                self.delete(&key, Durability::None)?;
            }
        }
        Ok(())
    }
}

impl<'a> Wreck<'a> {
    /// Looks at what is there, and lists what is wrong with the manifest.
    fn survey(folder: &'a dyn Folder, damages: &mut Vec<Damage>) -> Result<Self, Error> {
        let names = folder.list().map_err(Error::io("list", "the folder"))?;
        let present: Vec<u64> = names.iter().filter_map(|name| segment::number_in(name)).collect();
        let missing = || Error::damaged(manifest::NAME, 0, "the file is missing");
        let manifest = Manifest::load(folder).and_then(|found| found.ok_or_else(missing));
        let manifest = listed(damages, manifest)?;
        let salt = salt_of(folder, &present, manifest.as_ref())?;
        let mut wreck = Self { folder, salt, hasher: None, segments: Vec::new() };
        if let Some(manifest) = manifest {
            let is_own = manifest.salt == salt;
            wreck.hasher = is_own.then(|| hasher(manifest.seed));
            if is_own && !wreck.is_newer_than(&manifest, &present)? {
                wreck.segments = manifest.segments;
                return wreck.with_ends_of_files();
            }
            let what = "it is not that of the segments that are there";
            damages.push(Damage::new(manifest::NAME, 0, what));
        }
        wreck.segments = wreck.in_order_of_sequences(&present)?;
        wreck.with_ends_of_files()
    }

    /// Whether segments that the manifest does not name go on behind those that it names, or take the place of some.
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

    fn in_order_of_sequences(&self, present: &[u64]) -> Result<Vec<Entry>, Error> {
        let mut firsts = Vec::with_capacity(present.len());
        for &number in present {
            firsts.push((self.first_sequence(number)?.unwrap_or(u64::MAX), number));
        }
        firsts.sort_unstable();
        Ok(firsts.into_iter().map(|(_, number)| Entry { number, ..Entry::default() }).collect())
    }

    /// The sequence of the first sound record of a segment.
    fn first_sequence(&self, number: u64) -> Result<Option<u64>, Error> {
        let Some(segment) = Segment::open_unseen(self.folder, self.salt, number)? else {
            return Ok(None);
        };
        let end = segment.end();
        let mut scan = Scan::new(Arc::new(segment), end);
        if let Ok(found) = scan.next() {
            return Ok(found.map(|found| found.head.sequence));
        }
        scan.resume()?;
        Ok(scan.next()?.map(|found| found.head.sequence))
    }

    fn with_ends_of_files(mut self) -> Result<Self, Error> {
        for entry in &mut self.segments {
            let segment = Segment::open_unseen(self.folder, self.salt, entry.number)?;
            entry.end = entry.end.max(segment.map_or(0, |segment| segment.end()));
        }
        Ok(self)
    }

    /// Opens a segment, and lists what is wrong with it as a whole; none where there is nothing to read.
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
                list(damages, error)?;
                Segment::open_unseen(self.folder, self.salt, entry.number)?
            }
        };
        let cut = opened.as_ref().filter(|segment| segment.end() < entry.end);
        if let Some(segment) = cut {
            damages.push(Damage::new(&segment.name, segment.end(), "the file is cut short"));
        }
        Ok(opened.map(Arc::new))
    }

    /// What the hint of a segment tells of its records, if it tells anything.
    fn notes(&self, entry: &Entry) -> Vec<Note> {
        let end = Place { salt: self.salt, segment: entry.number, offset: entry.end };
        let hint = self.hasher.and_then(|_| hint::read(self.folder, end, u64::MAX));
        hint.map_or_else(Vec::new, |hint| hint.notes.iter().collect())
    }
}

/// The salt of the store: that of the manifest, unless all segments have others; then that of most of them.
fn salt_of(
    folder: &dyn Folder,
    present: &[u64],
    manifest: Option<&Manifest>,
) -> Result<u64, Error> {
    let mut salts = Vec::new();
    for &number in present {
        salts.extend(Segment::salt_in(folder, number)?);
    }
    let named = manifest.map(|manifest| manifest.salt);
    if let Some(salt) = named.filter(|salt| salts.is_empty() || salts.contains(salt)) {
        return Ok(salt);
    }
    salts.sort_unstable();
    let most = salts.chunk_by(|one, other| one == other).max_by_key(|same| same.len());
    Ok(most.map_or(0, |same| same[0]))
}

/// What is known of the records that begin from `from` on, in front of `to`.
fn unread_in(notes: &[Note], from: u64, to: u64) -> impl Iterator<Item = (u64, bool)> {
    let at = |offset| notes.partition_point(|note| note.offset() < offset);
    notes[at(from)..at(to)].iter().map(|note| (note.hash, !note.is_tombstone()))
}
