//! A table file read from its start to its end: to check it, and to save what is left of it.
//!
//! Frames follow one another; behind a damaged one, the next is looked for at every byte. So
//! neither the index nor the footer is needed, and what follows damage is found.
//!
//! **A check** is of every byte of the file, the order of the entries, the index, the hashes and
//! the counts. The order of the file is that of the keys. A block that was read waits until the
//! index block above it names it: so each must be named once, in order, and with a place that leads
//! to it. Hashes and keys wait for each other, too. After damage the entries behind it are still to
//! be in order, and nothing else is compared any more. Memory: the blocks that one index block
//! names, and the hashes of one frame.

use std::collections::VecDeque;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::super::entry::hash_of;
use super::block::{Block, tag_of};
use super::frame::{self, FrameHeader, HASHES, HEADER, Handle, Kind, MAX_RAW, Unsealed};
use super::index::handle_of;
use super::properties::TableInfo;
use super::reader::{BlockCache, Table, read_properties};
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::bytes::usize_of;
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::kernel::store_files::{self, NumberedFile, TABLE};
use crate::lsm::entry::{Entry, cmp_places};
use crate::lsm::range_deletions::RangeDeletions;

/// Bytes that are searched with one read.
const WINDOW: usize = 64 << 10;

/// What is wrong with a block that was written wrongly: its checksum matches.
pub(super) const UNSOUND: &str = "the entries of the block are not sound";

/// A table file that may be damaged.
#[derive(Debug)]
pub(in crate::lsm) struct TableFile {
    file: NumberedFile,
    len: u64,
}

/// A sound frame.
pub(super) struct Sound {
    pub(super) kind: Kind,
    pub(super) at: Handle,
    pub(super) block: Unsealed,
}

/// Takes a sound frame, and adds what is wrong with its contents to the list.
type EachSound<'a> = dyn FnMut(&mut Vec<Damage>, Sound) -> Result<(), Error> + 'a;

impl TableFile {
    /// Opens the file of table `number`. Returns `None` if there is none, or none that can be read.
    pub(in crate::lsm) fn open(
        folder: &dyn Folder,
        number: u64,
        salt: u64,
    ) -> Result<Option<Self>, Error> {
        let opened = NumberedFile::open_unchecked(folder, TABLE, (salt, number));
        let opened = collect_damage(&mut Vec::new(), opened)?.flatten();
        opened.map(|file| Ok(Self { len: file.len()?, file })).transpose()
    }

    /// Returns the range deletions, or `None` if they cannot be read.
    pub(in crate::lsm) fn range_deletions(&self) -> Result<Option<Arc<RangeDeletions>>, Error> {
        let read = collect_damage(&mut Vec::new(), read_properties(&self.file))?;
        Ok(read.map(|(properties, _)| properties.info.range_deletions))
    }

    /// Calls `each` with every entry of the sound blocks, in the order of the file, and adds what
    /// is damaged to `damages`.
    pub(in crate::lsm) fn entries(
        &self,
        damages: &mut Vec<Damage>,
        each: &mut dyn FnMut(Entry<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.frames(damages, &mut |damages, Sound { kind, at, block }| match kind {
            Kind::Data => self.each_entry(damages, at, block, &mut |entry, _| each(entry)),
            _ => Ok(()),
        })
    }

    /// Calls `each` with the entries of a block of data and their tags.
    pub(super) fn each_entry(
        &self,
        damages: &mut Vec<Damage>,
        at: Handle,
        block: Unsealed,
        each: &mut dyn FnMut(Entry<'_>, u8) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let unsound = || self.damage(at.offset, UNSOUND);
        let block = Block::of_data(block.bytes, block.start).filter(|block| block.count() > 0);
        let Some(block) = block else {
            damages.push(unsound());
            return Ok(());
        };
        let mut key = Vec::new();
        for (number, &tag) in block.tags().iter().enumerate() {
            let Some(entry) = block.entry(number) else {
                damages.push(unsound());
                break;
            };
            entry.copy_key(&mut key)?;
            let value = entry.value.map(|value| block.value(value));
            each(Entry { key: &key, sequence: entry.sequence, value }, tag)?;
        }
        Ok(())
    }

    /// Returns the number of hashes that the table still has, and those of keys that
    /// [`entries`](Self::entries) does not have any more, in ascending order. If versions of one
    /// key `may_span` several blocks, the keys on both sides of damage are among these.
    ///
    /// Takes 16 bytes of memory for each key.
    pub(in crate::lsm) fn lost_hashes(
        &self,
        seed: u64,
        may_span: bool,
    ) -> Result<(u64, Vec<u64>), Error> {
        let (mut had, mut has, mut damages) = (Vec::new(), Vec::new(), Vec::new());
        let (mut last, mut passed) = (None, 0);
        self.frames(&mut damages, &mut |damages, Sound { kind, at, block }| match kind {
            Kind::Hashes => {
                let (hashes, _) = block.raw().as_chunks();
                memory::reserve(&mut had, hashes.len())?;
                had.extend(hashes.iter().map(|hash| u64::from_le_bytes(*hash)));
                Ok(())
            }
            Kind::Data => {
                let before = damages.len();
                self.each_entry(damages, at, block, &mut |entry, _| {
                    let hash = Some(xxh3_64_with_seed(entry.key, seed));
                    if may_span && before > passed {
                        passed = before;
                        has.pop();
                        last = hash;
                    }
                    if last == hash {
                        return Ok(());
                    }
                    last = hash;
                    hash.map_or(Ok(()), |hash| memory::push(&mut has, hash))
                })
            }
            _ => Ok(()),
        })?;
        if may_span && damages.len() > passed {
            has.pop();
        }
        let count = had.len() as u64;
        has.sort_unstable();
        had.retain(|hash| has.binary_search(hash).is_err());
        had.sort_unstable();
        had.dedup();
        Ok((count, had))
    }

    /// Calls `each` with every sound frame, and adds what is damaged to `damages`.
    pub(super) fn frames(
        &self,
        damages: &mut Vec<Damage>,
        each: &mut EachSound<'_>,
    ) -> Result<(), Error> {
        let end = self.end_of_frames(damages)?;
        let mut offset = store_files::HEADER as u64;
        while offset < end {
            let Some((header, frame)) = self.frame(offset, end)? else {
                damages.push(self.damage(offset, "the checksum does not match"));
                offset = self.next_frame(offset + 1, end)?;
                continue;
            };
            let at = Handle { offset, stored: header.stored };
            match frame {
                Some(block) => each(damages, Sound { kind: header.kind, at, block })?,
                None => damages.push(self.damage(offset, "the block cannot be decompressed")),
            }
            offset = at.end();
        }
        Ok(())
    }

    pub(super) fn damage(&self, offset: u64, what: &'static str) -> Damage {
        Damage::new(&self.file.name, offset, what)
    }

    /// Returns the offset of the footer, or the end of the file if the footer is not sound.
    fn end_of_frames(&self, damages: &mut Vec<Damage>) -> Result<u64, Error> {
        let mut bytes = [0; frame::FOOTER];
        let start = self.len.saturating_sub(bytes.len() as u64);
        self.file.read_up_to(&mut bytes, start)?;
        if frame::decode_footer(&bytes, self.file.position(start)).is_some() {
            return Ok(start);
        }
        damages.push(self.damage(start, "the footer is not sound"));
        Ok(self.len)
    }

    /// Returns the frame at `offset`, if it is sound. The inner `None`: it cannot be decompressed.
    fn frame(
        &self,
        offset: u64,
        end: u64,
    ) -> Result<Option<(FrameHeader, Option<Unsealed>)>, Error> {
        let mut bytes = vec![0; HEADER];
        let read = self.file.read_up_to(&mut bytes, offset)?;
        let header = bytes.first_chunk().filter(|_| read == HEADER).and_then(FrameHeader::decode);
        let left = (end - offset).saturating_sub(HEADER as u64);
        let Some(header) = header.filter(|header| header.stored <= left.min(MAX_RAW)) else {
            return Ok(None);
        };
        memory::grow_to(&mut bytes, HEADER + usize_of(header.stored))?;
        let read = self.file.read_up_to(&mut bytes, offset)?;
        bytes.truncate(read);
        match frame::check(&bytes, self.file.position(offset)) {
            Some(header) => Ok(Some((header, frame::decompress(bytes, header)?))),
            None => Ok(None),
        }
    }

    /// Returns the offset of the first sound frame at `from` or behind it, or `end`.
    fn next_frame(&self, mut from: u64, end: u64) -> Result<u64, Error> {
        let mut window = vec![0; WINDOW];
        while from < end {
            let read = self.file.read_up_to(&mut window, from)?;
            let starts = window[..read].windows(HEADER).enumerate();
            for (at, bytes) in starts {
                let header = bytes.first_chunk().and_then(FrameHeader::decode);
                if header.is_some() && self.frame(from + at as u64, end)?.is_some() {
                    return Ok(from + at as u64);
                }
            }
            if read < WINDOW {
                break;
            }
            from += (WINDOW - HEADER + 1) as u64;
        }
        Ok(end)
    }
}

/// What is wrong, if anything is.
type Wrong = Option<&'static str>;

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
    let before = damages.len();
    // Checks the header, the footer, the properties and the root.
    let opened = match Table::open(folder, number, salt, &Arc::new(BlockCache::new(0))) {
        Err(Error::OtherStore { file }) => {
            Err(Error::damaged(&file, 0, "it belongs to another store"))
        }
        opened => opened,
    };
    let Some(table) = collect_damage(damages, opened)? else { return Ok(0) };
    let Some(file) = TableFile::open(folder, number, salt)? else { return Ok(0) };
    let mut check = Check::new(&table, &file, seed);
    file.frames(damages, &mut |damages, sound| {
        check.compares = damages.len() == before;
        let (at, kind) = (sound.at, sound.kind);
        let wrong = check.frame(damages, sound)?;
        // Entries are in order, and have their tags, whatever is damaged before them.
        if damages.len() == before || kind == Kind::Data {
            damages.extend(wrong.map(|what| file.damage(at.offset, what)));
        }
        progress(at.end());
        Ok(())
    })?;
    if damages.len() == before {
        damages.extend(check.at_end().map(|what| file.damage(0, what)));
    }
    Ok(check.seen.entries)
}

/// The place of an entry.
type Place = (Vec<u8>, u64);

/// A block that no index block has named yet.
struct Waiting {
    at: Handle,
    /// The places of its first and its last entry.
    first: Place,
    last: Place,
}

/// The place that an index block gives to a block of data. All entries behind that come after it.
struct Separator {
    place: Place,
    /// Whether no entry after the place may have its key: a read of an older version would look in
    /// the block, and not behind it.
    ends_key: bool,
}

impl Separator {
    fn is_before(&self, (key, sequence): &Place) -> bool {
        let order = cmp_places((&self.place.0, self.place.1), (key, *sequence));
        order.is_lt() && !(self.ends_key && self.place.0 == *key)
    }
}

/// What is known of the frames so far.
struct Check<'a> {
    table: &'a Table,
    file: &'a TableFile,
    seed: u64,
    /// Whether nothing is damaged so far.
    compares: bool,
    /// By height, that of the data first.
    waiting: Vec<VecDeque<Waiting>>,
    /// That of the last block of data that was named.
    separator: Option<Separator>,
    /// The place of the last entry.
    last: Place,
    /// The hashes of the table that no key was compared with yet, and those of keys.
    had: VecDeque<u64>,
    has: VecDeque<u64>,
    /// The number of hashes so far, and the offset of each frame of them.
    hashed: u64,
    list: Vec<u8>,
    /// How many of the list and the properties were where they are to be.
    ends: usize,
    /// What the entries say of the table.
    seen: TableInfo,
}

impl<'a> Check<'a> {
    fn new(table: &'a Table, file: &'a TableFile, seed: u64) -> Self {
        let (number, bytes) = (table.info().number, table.info().bytes);
        Self {
            table,
            file,
            seed,
            compares: true,
            waiting: Vec::new(),
            separator: None,
            last: Place::default(),
            had: VecDeque::new(),
            has: VecDeque::new(),
            hashed: 0,
            list: Vec::new(),
            ends: 0,
            seen: TableInfo { number, bytes, ..TableInfo::default() },
        }
    }

    /// Checks the next frame. Returns what is wrong if nothing before it was damaged.
    fn frame(&mut self, damages: &mut Vec<Damage>, sound: Sound) -> Result<Wrong, Error> {
        let Sound { kind, at, block } = sound;
        match kind {
            Kind::Data => self.data(damages, at, block),
            Kind::Index => match Block::of_index(block.bytes, block.start) {
                Some(block) => self.index(at, &block),
                None => {
                    damages.push(self.file.damage(at.offset, UNSOUND));
                    Ok(None)
                }
            },
            Kind::Hashes => self.hashes(at, &block),
            Kind::List => {
                let is_right = at == self.table.properties.list && block.raw() == self.list;
                self.ends += usize::from(is_right);
                Ok((!is_right).then_some(WRONG_HASHES))
            }
            Kind::Properties => {
                let is_right = at == self.table.properties_at;
                self.ends += usize::from(is_right);
                Ok((!is_right).then_some(WRONG_COUNTS))
            }
        }
    }

    fn data(
        &mut self,
        damages: &mut Vec<Damage>,
        at: Handle,
        block: Unsealed,
    ) -> Result<Wrong, Error> {
        let (mut wrong, mut first, before) = (None, None, damages.len());
        self.file.each_entry(damages, at, block, &mut |entry, tag| {
            let found = self.entry(&entry, tag)?;
            wrong = wrong.or(found);
            if first.is_none() {
                first = Some((memory::copy_of(entry.key)?, entry.sequence));
            }
            Ok(())
        })?;
        self.compares &= damages.len() == before;
        if let Some(first) = first {
            let last = (memory::copy_of(&self.last.0)?, self.last.1);
            self.wait(0, Waiting { at, first, last })?;
        }
        Ok(wrong.or_else(|| self.compare_hashes()))
    }

    fn entry(&mut self, entry: &Entry<'_>, tag: u8) -> Result<Wrong, Error> {
        let Entry { key, sequence, .. } = *entry;
        let (seen, hash) = (&mut self.seen, hash_of(key, self.seed));
        let is_first = seen.entries == 0;
        let is_after = cmp_places((&self.last.0, self.last.1), (key, sequence)).is_lt();
        seen.count(entry)?;
        if is_first || self.last.0 != key {
            seen.keys += 1;
            if self.compares {
                push(&mut self.has, hash)?;
            }
        }
        memory::copy_into(&mut self.last.0, key)?;
        self.last.1 = sequence;
        if !is_first && !is_after {
            return Ok(Some(OUT_OF_ORDER));
        }
        Ok((tag != tag_of(hash)).then_some(WRONG_HASHES))
    }

    /// Lets a block wait for the index block that names it.
    fn wait(&mut self, height: usize, block: Waiting) -> Result<(), Error> {
        if !self.compares {
            return Ok(());
        }
        while self.waiting.len() <= height {
            memory::push(&mut self.waiting, VecDeque::new())?;
        }
        push(&mut self.waiting[height], block)
    }

    /// Checks an index block: it names those that waited longest.
    fn index(&mut self, at: Handle, block: &Block) -> Result<Wrong, Error> {
        let child = |number| block.entry(number).and_then(|entry| handle_of(block, &entry));
        let is_first = |waiting: &VecDeque<Waiting>| {
            waiting.front().is_some_and(|first| child(0) == Some(first.at))
        };
        let height = self.waiting.iter().position(is_first).unwrap_or(0);
        let mut place = Place::default();
        for number in 0..block.count() {
            let waiting = self.waiting.get_mut(height).and_then(VecDeque::pop_front);
            let waiting = waiting.filter(|waiting| child(number) == Some(waiting.at));
            let (Some(waiting), Some(entry)) = (waiting, block.entry(number)) else {
                return Ok(Some(WRONG_INDEX));
            };
            entry.copy_key(&mut place.0)?;
            place.1 = entry.sequence;
            let order = cmp_places((&place.0, place.1), (&waiting.last.0, waiting.last.1));
            if height > 0 {
                if order.is_ne() {
                    return Ok(Some(WRONG_INDEX));
                }
                continue;
            }
            let is_behind = self.separator.as_ref().is_none_or(|it| it.is_before(&waiting.first));
            if order.is_lt() || !is_behind {
                return Ok(Some(WRONG_INDEX));
            }
            let place = (memory::copy_of(&place.0)?, place.1);
            self.separator = Some(Separator { place, ends_key: order.is_ne() });
        }
        self.wait(height + 1, Waiting { at, first: Place::default(), last: place })?;
        Ok(None)
    }

    /// Checks a frame of hashes, which has as many as a reader takes from it.
    fn hashes(&mut self, at: Handle, block: &Unsealed) -> Result<Wrong, Error> {
        if !self.compares {
            return Ok(None);
        }
        let (hashes, _) = block.raw().as_chunks();
        let count = HASHES.min(self.table.info().keys.saturating_sub(self.hashed));
        if at.stored != 8 * count || block.raw().len() as u64 != at.stored {
            return Ok(Some(WRONG_HASHES));
        }
        self.hashed += count;
        memory::reserve(&mut self.list, 8)?;
        self.list.extend(at.offset.to_le_bytes());
        for hash in hashes {
            push(&mut self.had, u64::from_le_bytes(*hash))?;
        }
        Ok(self.compare_hashes())
    }

    /// Compares the hashes of the table with those of keys, as far as both are known. A frame of
    /// hashes comes before the last of its keys.
    fn compare_hashes(&mut self) -> Wrong {
        let known = self.had.len().min(self.has.len());
        let is_right = self.had.drain(..known).eq(self.has.drain(..known));
        (self.compares && !(is_right && (self.has.len() as u64) < HASHES)).then_some(WRONG_HASHES)
    }

    /// Returns what is wrong with the table as a whole.
    fn at_end(&mut self) -> Wrong {
        self.seen.last_key = std::mem::take(&mut self.last.0);
        self.seen.add_range_deletions(self.table.info().range_deletions.clone());
        let roots = self.waiting.iter().rposition(|waiting| !waiting.is_empty());
        let is_root = |waiting: &Waiting| waiting.at == self.table.properties.root;
        let mut waiting = self.waiting.iter().flatten();
        if roots.map(|height| height as u64) != Some(self.table.height())
            || !waiting.next().is_some_and(is_root)
            || waiting.next().is_some()
        {
            Some(WRONG_INDEX)
        } else if self.ends != 2 || self.seen != *self.table.info() {
            Some(WRONG_COUNTS)
        } else {
            (self.had.len() + self.has.len() > 0).then_some(WRONG_HASHES)
        }
    }
}

/// Adds an item at the end.
fn push<T>(items: &mut VecDeque<T>, item: T) -> Result<(), Error> {
    let bytes = (items.len() + 1) as u64 * size_of::<T>() as u64;
    items.try_reserve(1).map_err(|_| Error::OutOfMemory { bytes })?;
    items.push_back(item);
    Ok(())
}
