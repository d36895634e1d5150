//! Checking a whole table: every byte of the file, the order of the entries, the index, the hashes
//! and the counts.
//!
//! Nothing is taken from the cache. After damage the walk goes on at the next block, so that one
//! pass lists all of it. Blocks lie in a file after those below them and after their older
//! siblings; a walk that follows no other ones ends, whatever the bytes are.

use std::sync::Arc;

use super::super::entry::hash_of;
use super::block::{Block, BlockEntry, tag_of};
use super::frame::{FOOTER, Handle, Kind};
use super::hashes::Hashes;
use super::index;
use super::index::handle_of;
use super::properties::TableInfo;
use super::reader::{BlockCache, Table};
use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::damage::{Damage, collect_damage};
use crate::kernel::file_header;
use crate::kernel::files::Folder;
use crate::lsm::entry::cmp_places;

const OUT_OF_ORDER: &str = "the entries are out of order";
const WRONG_INDEX: &str = "the index does not fit the blocks below it";
const WRONG_HASHES: &str = "the hashes are not those of the keys";
const WRONG_COUNTS: &str = "the properties do not fit the entries";

/// Opens table `number` anew, reads everything and adds what is wrong to `damages`. Calls
/// `progress` with the bytes read so far. Returns the number of entries in sound blocks.
pub(in crate::lsm) fn verify(
    folder: &dyn Folder,
    (number, salt, seed): (u64, u64, u64),
    damages: &mut Vec<Damage>,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let opened = match Table::open(folder, number, salt, &Arc::new(BlockCache::new(0))) {
        Err(Error::OtherStore { file }) => {
            Err(Error::damaged(&file, 0, "it belongs to another store"))
        }
        opened => opened,
    };
    let table = collect_damage(damages, opened)?;
    table.map_or(Ok(0), |table| table.verify(seed, damages, progress))
}

impl Table {
    fn verify(
        &self,
        seed: u64,
        damages: &mut Vec<Damage>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        let before = damages.len();
        // The header, the footer and these frames were checked when the table was opened.
        let opened: u64 = self.opened().iter().map(|handle| handle.end() - handle.offset).sum();
        let ends = (file_header::SIZE + FOOTER) as u64;
        let bytes = ends + opened + self.verify_hashes(damages)?;
        let has_hashes = damages.len() == before;
        let mut walk = Walk {
            table: self,
            seed,
            damages,
            progress,
            last_offsets: vec![0; usize_of(self.height().min(index::MAX_HEIGHT))],
            last: (Vec::new(), 0),
            separator: None,
            bytes,
            seen: TableInfo::default(),
            hashes: has_hashes.then(|| (self.hashes(), Vec::new(), 0)),
        };
        let (root, at) = self.root();
        walk.index(root, at, self.height())?;
        let (bytes, seen) = (walk.bytes, walk.finish());
        let info = self.info();
        let expected = TableInfo { number: info.number, bytes, ..seen };
        if damages.len() == before && expected != *info {
            damages.push(Damage::new(self.name(), 0, WRONG_COUNTS));
        }
        Ok(expected.entries)
    }

    /// Reads all hashes. Returns the bytes that they and their list take in the file.
    fn verify_hashes(&self, damages: &mut Vec<Damage>) -> Result<u64, Error> {
        let Some(list) = collect_damage(damages, self.hash_list())? else { return Ok(0) };
        let (mut hashes, mut some) = (self.hashes(), Vec::new());
        let frame_len = |stored: usize| Handle { offset: 0, stored: stored as u64 }.end();
        let mut bytes = frame_len(list.len());
        loop {
            let next = hashes.next(&mut some);
            match collect_damage(damages, next)? {
                Some(true) => bytes += frame_len(8 * some.len()),
                Some(false) => return Ok(bytes),
                None => {}
            }
        }
    }
}

/// The place of an entry of an index block. All entries behind its block come after it.
struct Separator {
    place: (Vec<u8>, u64),
    /// Whether no entry after the place may have its key: a read of an older version would look in
    /// the block, and not behind it.
    ends_key: bool,
}

impl Separator {
    fn is_before(&self, place: (&[u8], u64)) -> bool {
        let (key, sequence) = &self.place;
        cmp_places((key, *sequence), place).is_lt() && !(self.ends_key && *key == place.0)
    }
}

/// A walk over all blocks, in the order of the keys.
struct Walk<'a> {
    table: &'a Table,
    seed: u64,
    damages: &'a mut Vec<Damage>,
    progress: &'a mut dyn FnMut(u64),
    /// The offset of the last block of each level, that of the data first.
    last_offsets: Vec<u64>,
    /// The place of the last entry, if there was one.
    last: (Vec<u8>, u64),
    /// The place that an index block gives to the last block of data, if there was one.
    separator: Option<Separator>,
    /// The bytes of the parts that were sound.
    bytes: u64,
    /// What the entries say of the table.
    seen: TableInfo,
    /// The hashes of the table, some of them, and the index of the next one; `None` once they
    /// cannot be compared.
    hashes: Option<(Hashes<'a>, Vec<u64>, usize)>,
}

impl Walk<'_> {
    fn damaged(&mut self, at: Handle, what: &'static str) {
        self.damages.push(Damage::new(self.table.name(), at.offset, what));
    }

    /// Checks an index block of this height, which is at `at`, and all below it.
    fn index(&mut self, block: &Block, at: Handle, height: u64) -> Result<(), Error> {
        let below = height - 1;
        for number in 0..block.count() {
            let entry = block.entry(number);
            let found = entry.and_then(|entry| Some((handle_of(block, &entry)?, entry)));
            let last_offset = self.last_offsets[usize_of(below)];
            let child =
                found.filter(|(child, _)| child.offset > last_offset && child.end() <= at.offset);
            let Some((child, entry)) = child else {
                self.hashes = None;
                self.damaged(at, WRONG_INDEX);
                continue;
            };
            self.last_offsets[usize_of(below)] = child.offset;
            let kind = if below == 0 { Kind::Data } else { Kind::Index };
            let read = self.table.read_block(child, kind, false);
            let read = collect_damage(self.damages, read)?;
            if let Some(block) = &read {
                self.bytes += child.end() - child.offset;
                if below == 0 {
                    self.data(block, child)?;
                    (self.progress)(self.bytes);
                } else {
                    self.index(block, child, below)?;
                }
            } else {
                self.hashes = None;
            }
            self.separate(&entry, at, read.is_some().then_some(below))?;
        }
        Ok(())
    }

    /// Notes the place that an index block gives to the block below it. Checks it if that is
    /// readable: then `below` is the height of that block.
    fn separate(
        &mut self,
        entry: &BlockEntry<'_>,
        at: Handle,
        below: Option<u64>,
    ) -> Result<(), Error> {
        let mut place = (Vec::new(), entry.sequence);
        entry.copy_key(&mut place.0)?;
        let order = cmp_places((&place.0, place.1), (&self.last.0, self.last.1));
        let is_right = match below {
            Some(0) => order.is_ge(),
            // The place of the last entry of that index block.
            Some(_) => self.separator.as_ref().is_some_and(|last| last.place == place),
            None => true,
        };
        if !is_right {
            self.damaged(at, WRONG_INDEX);
        }
        self.separator = Some(Separator { place, ends_key: below.is_some() && order.is_ne() });
        Ok(())
    }

    /// Checks a block of data.
    fn data(&mut self, block: &Block, at: Handle) -> Result<(), Error> {
        let mut key = Vec::new();
        for (number, &tag) in block.tags().iter().enumerate() {
            let Some(entry) = block.entry(number) else {
                self.hashes = None;
                self.damaged(at, "the entries of the block are not sound");
                return Ok(());
            };
            entry.copy_key(&mut key)?;
            let place = (&key[..], entry.sequence);
            let is_first = self.seen.entries == 0;
            if !is_first && cmp_places(place, (&self.last.0, self.last.1)).is_le() {
                self.damaged(at, OUT_OF_ORDER);
            }
            if self.separator.as_ref().is_some_and(|separator| !separator.is_before(place)) {
                self.damaged(at, WRONG_INDEX);
            }
            let hash = hash_of(&key, self.seed);
            if is_first || key != self.last.0 {
                self.seen.keys += 1;
                self.compare_hash(hash, at)?;
            }
            if tag != tag_of(hash) {
                self.damaged(at, WRONG_HASHES);
            }
            self.count(&key, &entry);
            self.last.1 = entry.sequence;
            std::mem::swap(&mut self.last.0, &mut key);
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8], entry: &BlockEntry<'_>) {
        let seen = &mut self.seen;
        if seen.entries == 0 {
            seen.first_key = key.to_vec();
            seen.first_sequence = entry.sequence;
        }
        seen.entries += 1;
        seen.tombstones += u64::from(entry.value.is_none());
        seen.entry_bytes +=
            (key.len() + entry.value.as_ref().map_or(0, |value| value.len())) as u64;
        seen.first_sequence = seen.first_sequence.min(entry.sequence);
        seen.last_sequence = seen.last_sequence.max(entry.sequence);
    }

    /// Compares the hash of the next key with the next one of the table.
    fn compare_hash(&mut self, hash: u64, at: Handle) -> Result<(), Error> {
        let Some((hashes, some, next)) = &mut self.hashes else { return Ok(()) };
        if *next == some.len() {
            hashes.next(some)?;
            *next = 0;
        }
        let expected = some.get(*next).copied();
        *next += 1;
        if expected != Some(hash) {
            self.hashes = None;
            self.damaged(at, WRONG_HASHES);
        }
        Ok(())
    }

    /// Returns what the entries say of the table.
    fn finish(mut self) -> TableInfo {
        self.seen.last_key = self.last.0;
        self.seen
    }
}
