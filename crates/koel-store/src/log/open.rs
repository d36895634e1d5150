//! Opening: the manifest, the segments that it names, and every record of them entered into the index, in the order of the log.
//!
//! What is read is checked against what is known, and there are three answers to bytes that are not sound:
//!
//! 1. **Damage**, an error: in any segment but the last, in front of the end that the manifest knows, or in front of a place that a later mark says was durable. After
//!    [`close`](super::LogStore::close) the manifest knows the end of every segment, so then every missing or unsound byte is damage.
//! 2. **A torn end**, cut off and reported in [`Opened::torn`]: unsound bytes, or a batch without its end, behind everything that was known to be durable, in the last segment of a store that was not closed. Sound records may follow
//!    the unsound ones, since a disk writes in any order; they were not durable either, and go too: what stays is a prefix.
//! 3. **Nothing**, for hints: the segment is scanned. Nor for a record that a sound hint tells of: who reads it is told, and other keys are not kept from being read.
//!
//! Nothing is changed before all of this is known. Files that the manifest does not name are removed then, but not where one of them goes on behind the end of the log: a crash leaves no such file, an older manifest
//! that was put in the place of the right one does ([`Error::OldManifest`]); nor does it leave one of another store ([`Error::OtherStore`]).
//!
//! The log is in order: a later record of a key is behind an earlier one, whatever compaction did (`compact.rs`), so entering them one after the other gives the state, and
//! a deleted key stays deleted.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, RwLock};

use super::hint::{self, Note, Notes};
use super::index::Index;
use super::options::Options;
use super::read::Located;
use super::reenter::ByShard;
use super::segments::Segments;
use super::store::{Store, Writer, lock};
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::manifest::{self, Entry, Manifest};
use crate::kernel::poison::Poison;
use crate::kernel::record::{self, Kind};
use crate::kernel::scan::{Scan, furthest_mark};
use crate::kernel::segment::{self, FIRST, SIZES, Segment};

/// What opening a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The store was not closed, and the end of its log was not whole.
    pub torn: Option<Torn>,
    /// The store was closed before, or is new.
    pub was_closed: bool,
    /// Segments whose hints were of use.
    pub hinted: u64,
    /// Bytes of segments that were read because no hint covers them.
    pub scanned: u64,
    /// Files that a crash had left over, and that were removed.
    pub removed: Vec<String>,
}

/// Unsynced bytes that a crash left incomplete, and that were cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The segment.
    pub file: String,
    /// Where it ends now.
    pub offset: u64,
    /// How many bytes were cut off, or left out by who only reads.
    pub bytes: u64,
}

impl Store {
    pub(super) fn open(folder: Arc<dyn Folder>, options: &Options) -> Result<Self, Error> {
        let manifest = match Manifest::load(&*folder)? {
            Some(manifest) if options.read_only => manifest,
            Some(manifest) => {
                // A process that ended may have left names that are not durable; nothing may rest on them before they are.
                folder.sync().map_err(Error::io("sync", "the folder"))?;
                manifest
            }
            None => create(&*folder, options)?,
        };
        let names = folder.list().map_err(Error::io("list", "the folder"))?;
        let table = Segments::new(manifest.segment_bytes);
        if !table.have_slots(manifest.segments.iter().map(|entry| entry.number)) {
            return Err(Error::damaged(
                manifest::NAME,
                0,
                "two segments have numbers that no store has at once",
            ));
        }
        let segments = open_segments(&*folder, &manifest)?;
        // No record is shorter.
        let most = segments.iter().map(|segment| segment.end()).sum::<u64>() / record::HEAD as u64;
        let mut store = Self {
            salt: manifest.salt,
            seed: manifest.seed,
            segment_bytes: manifest.segment_bytes,
            segments: table,
            index: Index::new(options.expected_keys.max(manifest.keys.min(most))),
            compacting: Mutex::default(),
            compaction_failed: Mutex::default(),
            moving: RwLock::default(),
            syncing: Mutex::default(),
            writer: Mutex::new(Writer {
                sequence: manifest.sequence,
                number: manifest.number,
                announced: !manifest.clean,
                ..Writer::default()
            }),
            durable: Mutex::default(),
            poison: if options.read_only { Poison::read_only() } else { Poison::default() },
            told: Mutex::default(),
            counts: super::store::Counts::default(),
            filled: super::store::Bell::default(),
            unsynced: super::store::Bell::default(),
            sync_behind: options.sync_behind,
            opened: Opened { was_closed: manifest.clean, ..Opened::default() },
            folder,
        };
        let left = leftovers(&names, &manifest);
        let (notes, end) = store.recover(&manifest, &segments)?;
        // Nothing is cut off or removed before this.
        store.refuse_an_old_manifest(&left)?;
        if !options.read_only {
            store.remove(left)?;
        }
        if let Some(last) = segments.last() {
            store.go_on(last, notes, end)?;
        }
        Ok(store)
    }

    /// What a crash leaves holds nothing that the log has not: copies of its records, or none. A segment that goes on where the log ends is named by a later manifest.
    fn refuse_an_old_manifest(&self, left: &[String]) -> Result<(), Error> {
        let next = lock(&self.writer).sequence;
        for name in left {
            let Some(number) = segment::number_in(name) else { continue };
            if self.first_sequence(number)?.is_some_and(|first| first >= next) {
                return Err(Error::OldManifest { file: name.clone() });
            }
        }
        Ok(())
    }

    /// The sequence of the first record of a segment, if it is sound.
    fn first_sequence(&self, number: u64) -> Result<Option<u64>, Error> {
        let first = Segment::open(&*self.folder, self.salt, number)
            .and_then(|segment| segment.record(FIRST, &mut Vec::new()));
        match first {
            Ok(head) => Ok(Some(head.sequence)),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn remove(&mut self, left: Vec<String>) -> Result<(), Error> {
        for name in &left {
            self.folder.remove(name).map_err(Error::io("remove", name))?;
        }
        self.opened.removed = left;
        Ok(())
    }

    /// The last segment is written to from `end` on; what is behind that is a torn end.
    fn go_on(&mut self, last: &Arc<Segment>, notes: Notes, end: u64) -> Result<(), Error> {
        let len = last.end();
        let read_only = self.poison.is_read_only();
        if end < len {
            if read_only {
                last.set_end(end)
            } else {
                last.cut(end)?
            }
            let (file, bytes) = (last.name.clone(), len - end);
            self.opened.torn = Some(Torn { file, offset: end, bytes });
        }
        if !self.opened.was_closed && !read_only {
            last.sync()?;
        }
        let mut writer = lock(&self.writer);
        writer.active = Some(last.clone());
        writer.marked = FIRST;
        writer.notes = notes;
        self.set_durable(writer.position());
        Ok(())
    }

    /// Enters all records: what the hint of the last segment will say, and where its records end.
    fn recover(
        &mut self,
        manifest: &Manifest,
        segments: &[Arc<Segment>],
    ) -> Result<(Notes, u64), Error> {
        for segment in segments {
            self.segments.push(segment.clone());
        }
        let mut last = (Notes::default(), FIRST);
        let mut by_shard = ByShard::default();
        for (i, (segment, entry)) in segments.iter().zip(&manifest.segments).enumerate() {
            let (notes, lost) = self.replay(segment, &mut by_shard)?;
            let end = match lost {
                None => segment.end(),
                Some((offset, _)) if !is_exact(manifest, i) && is_torn(segment, entry, offset)? => {
                    offset
                }
                Some((_, error)) => return Err(error),
            };
            last = (notes, end);
        }
        Ok(last)
    }

    /// Enters all whole batches of a segment. Where it does not end with one, says from where on it is lost, and why.
    fn replay(
        &mut self,
        segment: &Arc<Segment>,
        by_shard: &mut ByShard,
    ) -> Result<(Notes, Option<(u64, Error)>), Error> {
        let end = segment.end();
        let (mut notes, mut from) = (Notes::default(), FIRST);
        if let Some(hint) = hint::read(&*self.folder, segment.place(end), self.segment_bytes) {
            self.enter_hint(segment, &hint.notes, by_shard)?;
            self.saw(segment, hint.sequence);
            self.opened.hinted += 1;
            (notes, from) = (hint.notes, hint.covered);
        }
        self.opened.scanned += end - from;
        let mut scan = Scan::from(segment.clone(), from, end);
        let mut batch = Vec::new();
        let mut whole = from;
        let lost = loop {
            let found = match scan.next() {
                Ok(Some(found)) => found,
                Ok(None) if batch.is_empty() => break None,
                Ok(None) => break Some(segment.damaged(whole, "a batch has no end")),
                Err(error @ Error::Damaged { .. }) => break Some(error),
                Err(error) => return Err(error),
            };
            if found.offset >= self.segment_bytes {
                return Err(
                    segment.damaged(found.offset, "a record begins behind the size of a segment")
                );
            }
            if found.head.kind != Kind::Mark {
                let key = found.key();
                let note = Note::new(self.hash(key), found.offset, &found.head);
                batch.push((note, key.to_vec()));
            }
            let head = found.head;
            if !head.more {
                self.saw(segment, head.sequence);
                for (note, key) in batch.drain(..) {
                    count(segment, &note);
                    self.enter_again(segment, &note, Some(&key))?;
                    notes.push(&note);
                }
                whole = scan.offset();
            }
        };
        Ok((notes, lost.map(|error| (whole, error))))
    }

    fn saw(&self, segment: &Segment, sequence: u64) {
        segment.saw(sequence);
        let mut writer = lock(&self.writer);
        writer.sequence = writer.sequence.max(sequence + 1);
    }

    /// Enters a record into the index, in place of an earlier one of its key. The key is read from the segment if it is needed and not at hand.
    pub(super) fn enter_again(
        &self,
        segment: &Arc<Segment>,
        note: &Note,
        key: Option<&[u8]>,
    ) -> Result<(), Error> {
        let location = self.segments.location(segment, note.offset());
        let old = self.earlier(segment, note, key)?;
        if let Some(old) = &old {
            old.segment.add_dead(old.size);
        }
        let live = (!note.is_tombstone()).then_some(location);
        self.index.change(note.hash, old.map(|old| old.location), live);
        Ok(())
    }

    /// The record entered before of the same key.
    fn earlier(
        &self,
        segment: &Arc<Segment>,
        note: &Note,
        key: Option<&[u8]>,
    ) -> Result<Option<Located>, Error> {
        if self.index.candidates(note.hash).is_none() {
            return Ok(None);
        }
        let found = match key {
            Some(key) => self.locate(key, note.hash),
            None => {
                self.key_at(segment, note.offset()).and_then(|key| self.locate(&key, note.hash))
            }
        };
        self.found_or_told(found, note.hash)
    }
}

/// What no manifest names: outputs of a compaction that did not end, or its inputs, or a segment that was never written to.
fn leftovers(names: &[String], manifest: &Manifest) -> Vec<String> {
    let live: HashSet<u64> = manifest.segments.iter().map(|entry| entry.number).collect();
    let is_left = |name: &&String| {
        let number = segment::number_in(name).or_else(|| hint::number_in(name));
        number.is_some_and(|number| !live.contains(&number)) || *name == manifest::NEW
    };
    names.iter().filter(is_left).cloned().collect()
}

/// The segments that the manifest names, as long as they should be.
fn open_segments(folder: &dyn Folder, manifest: &Manifest) -> Result<Vec<Arc<Segment>>, Error> {
    let open = |(i, entry): (usize, &Entry)| {
        let segment = Segment::open(folder, manifest.salt, entry.number)?;
        segment.set_cleaned(entry.cleaned);
        if is_exact(manifest, i) {
            check_length(&segment, entry)?;
        } else {
            check_last_length(&segment, entry)?;
        }
        Ok(Arc::new(segment))
    };
    manifest.segments.iter().enumerate().map(open).collect()
}

/// Whether the manifest knows where the segment at this place in the log ends: each but the one that was written to.
fn is_exact(manifest: &Manifest, place: usize) -> bool {
    manifest.clean || place + 1 < manifest.segments.len()
}

/// Whether what is lost of the segment that was being written, from `offset` on, was never durable: a torn end.
fn is_torn(segment: &Arc<Segment>, entry: &Entry, offset: u64) -> Result<bool, Error> {
    Ok(offset >= entry.end.max(furthest_mark(segment, offset, segment.end())?))
}

/// Counts a record, entered or not.
pub(super) fn count(segment: &Segment, note: &Note) {
    segment.add_record(note.size());
    if note.is_tombstone() {
        segment.add_tombstones(note.size());
    }
}

/// A segment whose end is known has that many bytes.
fn check_length(segment: &Segment, entry: &Entry) -> Result<(), Error> {
    let len = segment.end();
    match len.cmp(&entry.end) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(segment.damaged(len, "the file is cut short")),
        std::cmp::Ordering::Greater => {
            Err(segment.damaged(entry.end, "there are bytes behind the end of the records"))
        }
    }
}

/// The segment that was written to has at least as many bytes as were durable.
fn check_last_length(segment: &Segment, entry: &Entry) -> Result<(), Error> {
    let (len, most) = (segment.end(), *SIZES.end());
    if len < entry.end {
        Err(segment.damaged(len, "the file is shorter than it was made durable"))
    } else if len > most {
        Err(segment.damaged(most, "the file is longer than any segment"))
    } else {
        Ok(())
    }
}

/// The manifest of a new store, on the disk; none for who only reads.
fn create(folder: &dyn Folder, options: &Options) -> Result<Manifest, Error> {
    let names = folder.list().map_err(Error::io("list", "the folder"))?;
    if names.iter().any(|name| segment::number_in(name).is_some()) {
        return Err(Error::NoManifest);
    }
    if options.read_only {
        return Err(Error::io("open", manifest::NAME)(io::ErrorKind::NotFound.into()));
    }
    let random = |with: u64| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(with);
        hasher.finish()
    };
    let manifest = Manifest {
        clean: true,
        salt: options.seed.unwrap_or_else(|| random(1)),
        seed: options.seed.unwrap_or_else(|| random(2)),
        segment_bytes: options.segment_bytes,
        sequence: 1,
        number: 1,
        keys: 0,
        segments: Vec::new(),
    };
    manifest.store(folder)?;
    Ok(manifest)
}

impl Store {
    /// What every end of a life does that is not a crash: everything durable, with exact ends.
    pub(super) fn finish(&self) -> Result<(), Error> {
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
        self.publish(&self.manifest(&writer, &self.segments.all(), true))?;
        writer.announced = false;
        Ok(())
    }
}
