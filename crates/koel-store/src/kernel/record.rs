//! The record: the one form in which anything is written to a log.
//!
//! ```text
//! 0       8               16         18 or 20     20 or 24
//! +-------+---------------+----------+------------+-----+-------+---------+
//! | check | sequence << 8 | key      | value      | key | value | zeros   |
//! | sum   | | flags       | length   | length     |     |       | to 8    |
//! +-------+---------------+----------+------------+-----+-------+---------+
//! ```
//!
//! * Records start at multiples of 8 bytes. The checksum is over everything behind it *and* over where the record is: the store's salt, the segment's number and the offset. A record that a disk put in the
//!   wrong place, or that an earlier file left there, does not pass.
//! * A value above [`BLOCK`] bytes is *large*: the checksum ends behind the key (and zeros to 8), and the value follows in blocks of [`BLOCK`] bytes, the last one shorter and padded to 8, with a checksum behind each. So a value of any
//!   length is written and read in constant memory, and no byte of it is handed out unchecked.
//! * Both lengths have 16 bits where these are enough for both, otherwise 32, and a flag says so: one head for each pair of lengths, and a reader refuses the other one.
//! * A key or a value may have [`LONGEST`] bytes, one more than a length of 32 bits can say: then the length is 0, and a flag says what it means.
//! * Cost: 20 or 24 bytes and up to 7 of padding; 8 more for each 64 KiB of a large value. Sealing and checking run at the speed of XXH3.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::access::u64_at;

/// Records, and everything else, start at multiples of so many bytes.
pub(crate) const UNIT: u64 = 8;
/// Bytes of the longest head, and of the shortest record, which is the 20 of the shortest head padded: where a record begins, so many can be read.
pub(crate) const HEAD: usize = 24;
/// Bytes of a large value between two checksums; the longest value that is not large.
pub(crate) const BLOCK: usize = 64 << 10;

/// The most bytes of a key or of a value: 4 GiB.
pub(crate) const LONGEST: u64 = 1 << 32;

/// Sequences are less.
pub(crate) const SEQUENCES: u64 = 1 << 56;

const CHECKSUM: usize = 8;
/// From here on the content is hashed.
const CONTENT: usize = 16;
const KIND: u64 = 0x0f;
/// The key has [`LONGEST`] bytes.
const LONGEST_KEY: u64 = 0x10;
/// The value has.
const LONGEST_VALUE: u64 = 0x20;
/// The lengths have 32 bits each.
const WIDE: u64 = 0x40;
/// The greatest length that is not.
const NARROW: u64 = 0xffff;
/// What is written of a wide one.
const LOW: u64 = 0xffff_ffff;
/// The flags that go by the lengths.
const OF_LENGTHS: u64 = LONGEST_KEY | LONGEST_VALUE | WIDE;
const MORE: u64 = 0x80;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The key has this value.
    Value,
    /// The same, in blocks.
    Large,
    /// The key has no value.
    Tombstone,
    /// No key: the 8 bytes of value are an offset of this segment, and all before it was durable when this was written.
    Mark,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Value, Self::Large, Self::Tombstone, Self::Mark];

    fn flag(self) -> u64 {
        match self {
            Self::Value => 1,
            Self::Large => 2,
            Self::Tombstone => 3,
            Self::Mark => 4,
        }
    }
}

/// Where bytes are: part of what their checksum covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Random, one per store.
    pub(crate) salt: u64,
    /// The number of the segment.
    pub(crate) segment: u64,
    /// The offset in it.
    pub(crate) offset: u64,
}

impl Place {
    /// XXH3-64 with the salt as seed, of four numbers: the XXH3-64 of the content, `meta`, the segment and the offset.
    #[inline]
    fn checksum(&self, meta: u64, content: &[u8]) -> u64 {
        let mut words = [0; 32];
        let numbers = [xxh3_64(content), meta, self.segment, self.offset];
        for (word, number) in words.chunks_exact_mut(8).zip(numbers) {
            word.copy_from_slice(&number.to_le_bytes());
        }
        xxh3_64_with_seed(&words, self.salt)
    }

    /// The place `by` bytes further on.
    pub(crate) fn plus(&self, by: u64) -> Self {
        Self { offset: self.offset + by, ..*self }
    }
}

/// The bytes in front of the key, but for the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The next record belongs to the same batch.
    pub(crate) more: bool,
    /// Greater than that of every record in front of it in the log.
    pub(crate) sequence: u64,
    /// At most [`LONGEST`].
    pub(crate) key_len: u64,
    /// At most [`LONGEST`].
    pub(crate) value_len: u64,
}

impl Head {
    /// The head of a key with a value.
    pub(crate) fn of_value(key_len: u64, value_len: u64) -> Self {
        let kind = if is_large(value_len) { Kind::Large } else { Kind::Value };
        Self { kind, more: false, sequence: 0, key_len, value_len }
    }

    /// The head of a key without one.
    pub(crate) fn of_tombstone(key_len: u64) -> Self {
        Self { kind: Kind::Tombstone, more: false, sequence: 0, key_len, value_len: 0 }
    }

    /// The head in the first bytes of `bytes`, unless no record starts so.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEAD {
            return None;
        }
        let meta = u64_at(bytes, CHECKSUM);
        let kind = Kind::ALL.into_iter().find(|kind| kind.flag() == meta & KIND)?;
        let lens = u64_at(bytes, CONTENT);
        let wide = |len, longest| if meta & longest == 0 { len } else { len | LONGEST };
        let (key_len, value_len) = if meta & WIDE == 0 {
            (lens & NARROW, lens >> 16 & NARROW)
        } else {
            (wide(lens & LOW, LONGEST_KEY), wide(lens >> 32, LONGEST_VALUE))
        };
        let head = Self { kind, more: meta & MORE != 0, sequence: meta >> 8, key_len, value_len };
        let large = is_large(head.value_len);
        let fits = match kind {
            Kind::Value => !large,
            Kind::Large => large,
            Kind::Tombstone => head.value_len == 0,
            Kind::Mark => head.key_len == 0 && head.value_len == 8,
        };
        // Lengths beyond the longest have other flags, and so have those that need not be wide.
        (fits && meta & OF_LENGTHS == head.flags_of_lengths()).then_some(head)
    }

    fn meta(&self) -> u64 {
        let more = if self.more { MORE } else { 0 };
        self.sequence << 8 | self.kind.flag() | self.flags_of_lengths() | more
    }

    #[inline]
    fn flags_of_lengths(&self) -> u64 {
        if !self.is_wide() {
            return 0;
        }
        let flag = |len, flag| if len == LONGEST { flag } else { 0 };
        WIDE | flag(self.key_len, LONGEST_KEY) | flag(self.value_len, LONGEST_VALUE)
    }

    /// Whether the lengths need more than 16 bits.
    #[inline]
    fn is_wide(&self) -> bool {
        self.key_len > NARROW || self.value_len > NARROW
    }

    /// Bytes in front of the key.
    #[inline]
    fn bytes(&self) -> usize {
        CONTENT + if self.is_wide() { 8 } else { 4 }
    }

    /// Bytes of the value that follow the key: none of a large one.
    #[inline]
    fn value_in_body(&self) -> u64 {
        if self.kind == Kind::Large { 0 } else { self.value_len }
    }

    /// Bytes under the first checksum, its own included: all of a record that is not large.
    #[inline]
    pub(crate) fn body(&self) -> u64 {
        padded(self.bytes() as u64 + self.key_len + self.value_in_body())
    }

    /// Bytes of the record.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        let value = self.value_len;
        let blocks = value.div_ceil(BLOCK as u64) * CHECKSUM as u64 + padded(value);
        self.body() + if self.kind == Kind::Large { blocks } else { 0 }
    }

    /// The key, of the bytes of the record.
    #[inline]
    pub(crate) fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.bytes()..][..usize_of(self.key_len)]
    }

    /// The value, of the bytes of the record; nothing of a large one.
    #[inline]
    pub(crate) fn value<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.bytes() + usize_of(self.key_len)..][..usize_of(self.value_in_body())]
    }

    /// Both lengths as they are written; only the first 4 bytes are if they are not wide.
    #[inline]
    fn lengths(&self) -> u64 {
        if self.is_wide() {
            self.key_len & LOW | self.value_len << 32
        } else {
            self.key_len | self.value_len << 16
        }
    }
}

/// Whether a value of so many bytes is in blocks.
#[inline]
fn is_large(value_len: u64) -> bool {
    value_len > BLOCK as u64
}

/// The next multiple of 8.
#[inline]
fn padded(len: u64) -> u64 {
    len.next_multiple_of(UNIT)
}

/// Adds a record to `bytes`, not sealed yet: of its head only the lengths are there until then.
pub(crate) fn append(bytes: &mut Vec<u8>, head: &Head, key: &[u8], value: &[u8]) {
    let key_start = bytes.len() + head.bytes();
    bytes.extend_from_slice(&[0; CONTENT]);
    bytes.extend_from_slice(&head.lengths().to_le_bytes());
    bytes.truncate(key_start);
    bytes.extend_from_slice(key);
    if head.kind == Kind::Large {
        pad(bytes);
        for block in value.chunks(BLOCK) {
            append_block(bytes, block);
        }
    } else {
        bytes.extend_from_slice(value);
        pad(bytes);
    }
}

/// Adds a block of a large value, not sealed yet.
pub(crate) fn append_block(bytes: &mut Vec<u8>, block: &[u8]) {
    bytes.extend_from_slice(block);
    pad(bytes);
    bytes.resize(bytes.len() + CHECKSUM, 0);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Gives the record at the start of `bytes`, as far as it is there, its sequence, its place in a batch and its checksums.
pub(crate) fn seal(bytes: &mut [u8], head: &Head, place: &Place) {
    let (meta, body) = (head.meta(), usize_of(head.body()));
    let checksum = place.checksum(meta, &bytes[CONTENT..body]);
    bytes[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    bytes[CHECKSUM..CONTENT].copy_from_slice(&meta.to_le_bytes());
    let mut at = body;
    for block in block_sizes(head) {
        if let Some(block_bytes) = bytes.get_mut(at..at + block.stored) {
            seal_block(block_bytes, &place.plus(at as u64));
        }
        at += block.stored;
    }
}

/// Writes the checksum behind a block.
pub(crate) fn seal_block(stored: &mut [u8], place: &Place) {
    let content = stored.len() - CHECKSUM;
    let checksum = place.checksum(0, &stored[..content]);
    stored[content..].copy_from_slice(&checksum.to_le_bytes());
}

/// Whether the checksum in front of `body`, which begins with a head and has the bytes of [`Head::body`], is that of a record at `place`.
#[inline]
pub(crate) fn is_sound(body: &[u8], place: &Place) -> bool {
    u64_at(body, 0) == place.checksum(u64_at(body, CHECKSUM), &body[CONTENT..])
}

/// Whether the checksum behind a block is its own.
pub(crate) fn is_sound_block(stored: &[u8], place: &Place) -> bool {
    let content = stored.len() - CHECKSUM;
    u64_at(stored, content) == place.checksum(0, &stored[..content])
}

/// A block of a large value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSize {
    /// Bytes of the value.
    pub(crate) content: usize,
    /// Bytes in the file.
    pub(crate) stored: usize,
}

/// The blocks of a large value in order; none of another value.
pub(crate) fn block_sizes(head: &Head) -> impl Iterator<Item = BlockSize> + use<> {
    let value = if head.kind == Kind::Large { usize_of(head.value_len) } else { 0 };
    (0..value).step_by(BLOCK).map(move |start| block_size(value - start))
}

/// The next block where so many bytes of the value are left.
pub(crate) fn block_size(left: usize) -> BlockSize {
    let content = left.min(BLOCK);
    BlockSize { content, stored: content.next_multiple_of(8) + CHECKSUM }
}

/// A number of bytes that are in memory, which has 64 bits of addresses (`lib.rs`).
#[inline]
pub(crate) fn usize_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// A mark: everything in front of `durable` is.
pub(crate) fn append_mark(bytes: &mut Vec<u8>, durable: u64, sequence: u64, place: &Place) {
    let head = Head { kind: Kind::Mark, more: false, sequence, key_len: 0, value_len: 8 };
    let start = bytes.len();
    append(bytes, &head, &[], &durable.to_le_bytes());
    seal(&mut bytes[start..], &head, place);
}

#[cfg(test)]
mod tests;
