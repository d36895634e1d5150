//! A block: sorted entries in one piece of memory, which are searched where they lie.
//!
//! ```text
//! +---------+-------+----+-----------------+--------+-------+
//! | entry 0 | entry | .. | offset of each  | tag of | count |
//! |         |       |    | entry           | each   |       |
//! +---------+-------+----+-----------------+--------+-------+
//! entry: shared | suffix length | 0 or value length + 1 | sequence | suffix | value
//! ```
//!
//! * The first of each [`GROUP`] entries has its whole key. Each other key of the group leaves out
//!   the bytes that it shares with that one, so any key can be compared without its neighbours.
//! * The offset of every entry is known, so a search halves the block, and goes either way. Of an
//!   index block the first bytes of the keys are kept as numbers, and only keys that start alike
//!   are compared.
//! * Blocks of data have a byte of each key's hash as its tag. A lookup of one key compares the
//!   tags with vector instructions, and then the key of one entry, seldom of two.
//! * The four numbers of an entry have variable length. Offsets have 16 bits, or 32 if the entries
//!   take more than 64 KiB; the top bit of the count says which.
//!
//! Whatever the bytes are, nothing outside of them is read; an unsound entry is `None`.

use std::cmp::Ordering;
use std::ops::Range;

use crate::Error;
use crate::kernel::bytes::{self, put_varint, take_varint, u32_at, usize_of};
use crate::kernel::memory;
use crate::lsm::entry::{Entry, word_at};

/// Entries whose keys are shortened by what they share with the first of them.
pub(super) const GROUP: usize = 16;

/// Fewer shared bytes are not left out: a key that is whole is read without the first of its group.
const MIN_SHARED: usize = 4;

/// The top bit of the count: offsets have 32 bits.
const WIDE: u32 = 1 << 31;
/// Bytes of entries up to which offsets have 16 bits.
const NARROW: usize = 1 << 16;

/// The byte of a key's hash that is its tag.
#[inline]
pub(super) fn tag_of(hash: u64) -> u8 {
    hash.to_le_bytes()[7]
}

/// A block in memory.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// Where the entries start.
    start: usize,
    /// Where the offsets start.
    offsets: usize,
    /// Where the tags start.
    tags: usize,
    count: usize,
    wide: bool,
    words: Option<Words>,
}

/// The starts of the keys of a block, for a search that reads few bytes.
#[derive(Debug)]
struct Words {
    /// What all keys start with.
    shared: Vec<u8>,
    /// The 8 bytes behind that of each key, the first byte on top; 0 where a key has ended.
    words: Vec<u64>,
}

impl Words {
    fn new(block: &Block) -> Option<Self> {
        let mut key = Vec::new();
        let (mut shared, mut words) = (Vec::new(), Vec::new());
        if let Some(last) = block.count.checked_sub(1) {
            block.entry(0)?.copy_key(&mut shared).ok()?;
            block.entry(last)?.copy_key(&mut key).ok()?;
            shared.truncate(shared_len(&shared, &key));
        }
        words.try_reserve_exact(block.count).ok()?;
        for index in 0..block.count {
            block.entry(index)?.copy_key(&mut key).ok()?;
            words.push(word_at(&key, shared.len()));
        }
        Some(Self { shared, words })
    }

    /// Returns the indices between which a search for `key` has to look: keys before the first are
    /// less, and those from the second on are greater.
    #[inline]
    fn around(&self, key: &[u8]) -> (usize, usize) {
        let count = self.words.len();
        let front = &key[..self.shared.len().min(key.len())];
        match front.cmp(&self.shared) {
            Ordering::Less => (0, 0),
            Ordering::Greater => (count, count),
            Ordering::Equal => {
                let word = word_at(key, self.shared.len());
                let low = self.words.partition_point(|other| *other < word);
                let equal = self.words[low..].iter().take_while(|other| **other == word).count();
                (low, low + equal)
            }
        }
    }
}

/// An entry of a block. Its key is `prefix` and then `suffix`.
#[derive(Clone, Debug)]
pub(super) struct BlockEntry<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) suffix: &'a [u8],
    pub(super) sequence: u64,
    /// Where the value is in the bytes of the block.
    pub(super) value: Option<Range<usize>>,
}

impl BlockEntry<'_> {
    /// Compares the key with another.
    #[inline]
    fn cmp_key(&self, key: &[u8]) -> Ordering {
        if self.prefix.is_empty() {
            return self.suffix.cmp(key);
        }
        let (front, back) = key.split_at(self.prefix.len().min(key.len()));
        self.prefix.cmp(front).then_with(|| self.suffix.cmp(back))
    }

    #[inline]
    fn has_key(&self, key: &[u8]) -> bool {
        key.len() == self.prefix.len() + self.suffix.len()
            && key.ends_with(self.suffix)
            && key.starts_with(self.prefix)
    }

    #[inline]
    fn is_before(&self, key: &[u8], sequence: u64) -> bool {
        self.cmp_key(key).then(sequence.cmp(&self.sequence)) == Ordering::Less
    }

    /// Replaces the contents of `into` by the key.
    #[inline]
    pub(super) fn copy_key(&self, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        memory::reserve(into, self.prefix.len() + self.suffix.len())?;
        into.extend_from_slice(self.prefix);
        into.extend_from_slice(self.suffix);
        Ok(())
    }
}

impl Block {
    /// Takes the block of data that starts at `start` of `bytes` and ends with them. Returns `None`
    /// if its parts do not fit into it.
    pub(super) fn of_data(bytes: Vec<u8>, start: usize) -> Option<Self> {
        Self::new(bytes, start, true)
    }

    /// Takes an index block, likewise. Returns `None` if one of its entries is not sound, too.
    pub(super) fn of_index(bytes: Vec<u8>, start: usize) -> Option<Self> {
        let mut block = Self::new(bytes, start, false)?;
        block.words = Some(Words::new(&block)?);
        Some(block)
    }

    fn new(bytes: Vec<u8>, start: usize, has_tags: bool) -> Option<Self> {
        let end = bytes.len().checked_sub(4).filter(|end| *end >= start)?;
        let word = u32_at(&bytes, end);
        let (count, wide) = (usize_of(u64::from(word & !WIDE)), word & WIDE != 0);
        let tags = end.checked_sub(if has_tags { count } else { 0 })?;
        let offsets = tags.checked_sub(count * if wide { 4 } else { 2 })?;
        (offsets >= start).then_some(Self { bytes, start, offsets, tags, count, wide, words: None })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes of memory that the block takes.
    pub(super) fn memory(&self) -> usize {
        let words = self.words.as_ref();
        let words = words.map_or(0, |words| words.shared.len() + 8 * words.words.len());
        self.bytes.len() + words + size_of::<Self>()
    }

    /// Returns a value of an entry of this block.
    #[inline]
    pub(super) fn value(&self, at: Range<usize>) -> &[u8] {
        self.bytes.get(at).unwrap_or_default()
    }

    /// Returns the tag of each entry.
    pub(super) fn tags(&self) -> &[u8] {
        &self.bytes[self.tags..self.bytes.len() - 4]
    }

    /// Returns the bytes of entry `index` and those behind it.
    #[inline]
    fn entry_bytes(&self, index: usize) -> Option<&[u8]> {
        if index >= self.count {
            return None;
        }
        let offset = if self.wide {
            usize_of(u64::from(u32_at(&self.bytes, self.offsets + 4 * index)))
        } else {
            bytes::u16_at(&self.bytes, self.offsets + 2 * index)
        };
        self.bytes.get(self.start + offset..self.offsets)
    }

    /// Returns the key of the entry that starts the group of entry `index`.
    #[inline]
    fn head(&self, index: usize) -> Option<&[u8]> {
        let mut rest = self.entry_bytes(index - index % GROUP)?;
        let shared = take_varint(&mut rest)?;
        let len = usize_of(take_varint(&mut rest)?);
        take_varint(&mut rest)?;
        take_varint(&mut rest)?;
        rest.get(..len).filter(|_| shared == 0)
    }

    /// Returns entry `index`. `None` if its bytes are not sound.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> Option<BlockEntry<'_>> {
        let mut rest = self.entry_bytes(index)?;
        let shared = usize_of(take_varint(&mut rest)?);
        let len = usize_of(take_varint(&mut rest)?);
        let value = take_varint(&mut rest)?;
        let sequence = take_varint(&mut rest)?;
        let prefix = match shared {
            0 => &[],
            _ if index.is_multiple_of(GROUP) => return None,
            _ => self.head(index)?.get(..shared)?,
        };
        let (suffix, rest) = rest.split_at_checked(len)?;
        let value = match value.checked_sub(1).map(usize_of) {
            None => None,
            Some(len) if len > rest.len() => return None,
            Some(len) => {
                let start = self.offsets - rest.len();
                Some(start..start + len)
            }
        };
        Some(BlockEntry { prefix, suffix, sequence, value })
    }

    /// Returns the index of the first entry at or after a place, the number of entries if there is
    /// none. `None` if an entry is not sound.
    pub(super) fn seek(&self, key: &[u8], sequence: u64) -> Option<usize> {
        let words = self.words.as_ref();
        let (mut low, mut high) = words.map_or((0, self.count), |words| words.around(key));
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle)?.is_before(key, sequence) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Returns the newest version of `key` whose sequence number is at most `sequence`. The outer
    /// `None`: an entry is not sound.
    #[inline]
    pub(super) fn find(
        &self,
        key: &[u8],
        tag: u8,
        sequence: u64,
    ) -> Option<Option<BlockEntry<'_>>> {
        for index in memchr::memchr_iter(tag, self.tags()) {
            let entry = self.entry(index)?;
            if entry.sequence <= sequence && entry.has_key(key) {
                return Some(Some(entry));
            }
        }
        Some(None)
    }
}

/// A block that is being written.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    tags: Vec<u8>,
    /// The first key of the current group.
    head: Vec<u8>,
    has_tags: bool,
}

impl BlockBuilder {
    pub(super) fn new(has_tags: bool) -> Self {
        Self {
            bytes: Vec::new(),
            offsets: Vec::new(),
            tags: Vec::new(),
            head: Vec::new(),
            has_tags,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the bytes of the block if it ended here.
    pub(super) fn size(&self) -> usize {
        let wide = self.bytes.len() > NARROW;
        self.bytes.len() + self.count() * if wide { 4 } else { 2 } + self.tags.len() + 4
    }

    /// Adds an entry, which comes after those so far. The block has less than 4 GiB.
    pub(super) fn add(&mut self, entry: Entry<'_>, tag: u8) -> Result<(), Error> {
        let Entry { key, sequence, value } = entry;
        memory::reserve(
            &mut self.bytes,
            4 * bytes::MAX_VARINT + key.len() + value.map_or(0, <[u8]>::len),
        )?;
        let shared = if self.count().is_multiple_of(GROUP) {
            memory::copy_into(&mut self.head, key)?;
            0
        } else {
            let shared = shared_len(&self.head, key);
            if shared < MIN_SHARED { 0 } else { shared }
        };
        let offset = u32::try_from(self.bytes.len())
            .map_err(|_| Error::OutOfMemory { bytes: self.bytes.len() as u64 })?;
        memory::push(&mut self.offsets, offset)?;
        if self.has_tags {
            memory::push(&mut self.tags, tag)?;
        }
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, (key.len() - shared) as u64);
        put_varint(&mut self.bytes, value.map_or(0, |value| value.len() as u64 + 1));
        put_varint(&mut self.bytes, sequence);
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        Ok(())
    }

    /// Completes the block and returns its bytes. Before the next block, call
    /// [`clear`](Self::clear).
    pub(super) fn finish(&mut self) -> Result<&[u8], Error> {
        let wide = self.bytes.len() > NARROW;
        let count = self.count();
        memory::reserve(&mut self.bytes, 5 * count + 4)?;
        for offset in &self.offsets {
            let offset = offset.to_le_bytes();
            self.bytes.extend_from_slice(if wide { &offset } else { &offset[..2] });
        }
        self.bytes.extend_from_slice(&self.tags);
        let count = u32::try_from(count).unwrap_or_default();
        let count = if wide { count | WIDE } else { count };
        self.bytes.extend_from_slice(&count.to_le_bytes());
        Ok(&self.bytes)
    }

    /// Makes the block empty. Memory of an unusually large one is given back.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.offsets.clear();
        self.tags.clear();
        self.head.clear();
    }
}

/// Returns the number of bytes at the front that both have.
#[inline]
pub(super) fn shared_len(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
