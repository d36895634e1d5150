//! The record: the one format in which everything is written to a log.
//!
//! ```text
//! 0       8               16         18 or 20     20 or 24
//! +-------+---------------+----------+------------+-----+-------+---------+
//! | check | sequence << 8 | key      | value      | key | value | zeros   |
//! | sum   | | flags       | length   | length     |     |       | to 8    |
//! +-------+---------------+----------+------------+-----+-------+---------+
//! ```
//!
//! * Records start at multiples of 8 bytes. The checksum covers everything that follows it, *and*
//!   the position of the record: the store's salt, the segment number and the offset. So a record
//!   that a disk put in the wrong place, or that an earlier file left there, does not match.
//! * A value above [`BLOCK`] bytes is *large*. The checksum then ends after the key (with zeros to
//!   8), and the value follows in blocks of [`BLOCK`] bytes. The last block is shorter and padded
//!   to 8, and each block is followed by a checksum. So a value of any length is written and read
//!   in constant memory, and every byte is checked before a reader gets it.
//! * Both lengths have 16 bits if both fit, otherwise both have 32 bits; a flag says which. Each
//!   pair of lengths has exactly one encoding, and readers refuse the other.
//! * A key or a value has at most [`MAX_LEN`] bytes, one more than 32 bits can express: then the
//!   length is 0 and a flag is set.
//! * Cost: 20 or 24 bytes and up to 7 of padding; 8 more for each 64 KiB of a large value. Sealing
//!   and checking run at the speed of XXH3.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use super::bytes::{u64_at, usize_of};

/// Alignment of records, and of everything else in a segment.
pub(crate) const ALIGNMENT: u64 = 8;
/// Bytes of the longest header. The shortest record is as long (the shortest header has 20 bytes,
/// padded to 24), so this many bytes can be read wherever a record starts.
pub(crate) const HEADER: usize = 24;
/// Bytes of a mark.
pub(crate) const MARK: usize = 32;
/// Bytes of a large value between two checksums. A longer value is large.
pub(crate) const BLOCK: usize = 64 << 10;

/// Maximum length of a key or a value: 4 GiB.
pub(crate) const MAX_LEN: u64 = 1 << 32;

/// Every sequence number in the files of a store that opens is less than this. A record has room
/// for twice as many, which no process can use up.
pub(crate) const SEQUENCE_LIMIT: u64 = 1 << 55;

const CHECKSUM: usize = 8;
/// Offset of the bytes that are hashed as content.
const CONTENT: usize = 16;
const KIND: u64 = 0x0f;
/// Flag: the key has [`MAX_LEN`] bytes.
const MAX_KEY: u64 = 0x10;
/// Flag: the value has [`MAX_LEN`] bytes.
const MAX_VALUE: u64 = 0x20;
/// Flag: the lengths have 32 bits each.
const WIDE: u64 = 0x40;
/// The greatest length that fits in 16 bits.
const NARROW: u64 = 0xffff;
/// The bits of a wide length that are written.
const LOW: u64 = 0xffff_ffff;
/// The flags that the lengths determine.
const LENGTH_FLAGS: u64 = MAX_KEY | MAX_VALUE | WIDE;
/// Flag: the next record belongs to the same batch.
const MORE: u64 = 0x80;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The key has this value.
    Value = 1,
    /// The key has this value, stored in blocks.
    Large = 2,
    /// The key has no value.
    Tombstone = 3,
    /// No key. The 8 bytes of value are an offset in this segment: everything before it was durable
    /// when the mark was written.
    Mark = 4,
    /// The keys from this one on, and before the one that stands in place of a value, have no
    /// value; to the last key if that is empty. Only in an ordered store.
    Range = 5,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Value, Self::Large, Self::Tombstone, Self::Mark, Self::Range];
}

/// The position of bytes in a store, which their checksum covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// Random, one per store.
    pub(crate) salt: u64,
    /// The number of the file.
    pub(crate) segment: u64,
    /// The offset in the file.
    pub(crate) offset: u64,
}

impl Position {
    /// Returns the checksum of `content` with `meta` at this position.
    #[inline]
    pub(crate) fn checksum(&self, meta: u64, content: &[u8]) -> u64 {
        self.checksum_of_hash(meta, xxh3_64(content))
    }

    /// Returns the XXH3-64, seeded with the salt, of four numbers: the XXH3-64 of the content,
    /// `meta`, the segment number and the offset.
    #[inline]
    fn checksum_of_hash(&self, meta: u64, content_hash: u64) -> u64 {
        let mut words = [0; 32];
        let numbers = [content_hash, meta, self.segment, self.offset];
        for (word, number) in words.chunks_exact_mut(8).zip(numbers) {
            word.copy_from_slice(&number.to_le_bytes());
        }
        xxh3_64_with_seed(&words, self.salt)
    }

    /// Returns the position `by` bytes further on.
    pub(crate) fn plus(&self, by: u64) -> Self {
        Self { offset: self.offset + by, ..*self }
    }
}

/// The bytes before the key, without the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The next record belongs to the same batch.
    pub(crate) more: bool,
    /// Greater than the sequence number of every earlier record of the log.
    pub(crate) sequence: u64,
    /// At most [`MAX_LEN`].
    pub(crate) key_len: u64,
    /// At most [`MAX_LEN`].
    pub(crate) value_len: u64,
}

impl Header {
    /// Returns the header of a key with a value.
    pub(crate) fn of_value(key_len: u64, value_len: u64) -> Self {
        let kind = if is_large(value_len) { Kind::Large } else { Kind::Value };
        Self { kind, more: false, sequence: 0, key_len, value_len }
    }

    /// Returns the header of a tombstone.
    pub(crate) fn of_tombstone(key_len: u64) -> Self {
        Self { kind: Kind::Tombstone, more: false, sequence: 0, key_len, value_len: 0 }
    }

    /// Returns the header of a deleted range. Both keys have at most [`BLOCK`] bytes.
    pub(crate) fn of_range(from_len: u64, to_len: u64) -> Self {
        Self { kind: Kind::Range, more: false, sequence: 0, key_len: from_len, value_len: to_len }
    }

    /// Decodes the header at the start of `bytes`. Returns `None` if no record can start like this.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER {
            return None;
        }
        let meta = u64_at(bytes, CHECKSUM);
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u64 == meta & KIND)?;
        let lens = u64_at(bytes, CONTENT);
        let wide = |len, max_flag| if meta & max_flag == 0 { len } else { len | MAX_LEN };
        let (key_len, value_len) = if meta & WIDE == 0 {
            (lens & NARROW, lens >> 16 & NARROW)
        } else {
            (wide(lens & LOW, MAX_KEY), wide(lens >> 32, MAX_VALUE))
        };
        let header = Self { kind, more: meta & MORE != 0, sequence: meta >> 8, key_len, value_len };
        let large = is_large(header.value_len);
        let fits = match kind {
            Kind::Value | Kind::Range => !large,
            Kind::Large => large,
            Kind::Tombstone => header.value_len == 0,
            Kind::Mark => header.key_len == 0 && header.value_len == 8,
        };
        // Lengths above the maximum, and wide ones that need not be, imply other flags.
        (fits && meta & LENGTH_FLAGS == header.length_flags()).then_some(header)
    }

    fn meta(&self) -> u64 {
        let more = if self.more { MORE } else { 0 };
        self.sequence << 8 | self.kind as u64 | self.length_flags() | more
    }

    #[inline]
    fn length_flags(&self) -> u64 {
        if !self.is_wide() {
            return 0;
        }
        let flag = |len, flag| if len == MAX_LEN { flag } else { 0 };
        WIDE | flag(self.key_len, MAX_KEY) | flag(self.value_len, MAX_VALUE)
    }

    /// Returns whether the lengths need more than 16 bits.
    #[inline]
    fn is_wide(&self) -> bool {
        self.key_len > NARROW || self.value_len > NARROW
    }

    /// Returns the number of bytes before the key.
    #[inline]
    fn key_start(&self) -> usize {
        CONTENT + if self.is_wide() { 8 } else { 4 }
    }

    /// Returns the number of value bytes that follow the key: 0 for a large value.
    #[inline]
    fn value_in_body(&self) -> u64 {
        if self.kind == Kind::Large { 0 } else { self.value_len }
    }

    /// Returns the length of the body: the bytes under the first checksum, and that checksum. This
    /// is the whole record unless the value is large.
    #[inline]
    pub(crate) fn body(&self) -> u64 {
        padded(self.key_start() as u64 + self.key_len + self.value_in_body())
    }

    /// Returns the length of the record.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        let value = self.value_len;
        let blocks = value.div_ceil(BLOCK as u64) * CHECKSUM as u64 + padded(value);
        self.body() + if self.kind == Kind::Large { blocks } else { 0 }
    }

    /// Returns the key in the first bytes of a record that was not checked.
    pub(crate) fn unchecked_key<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.key_start()..)?.get(..usize_of(self.key_len))
    }

    /// Returns the key in the bytes of the record.
    #[inline]
    pub(crate) fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.key_start()..][..usize_of(self.key_len)]
    }

    /// Returns the value in the bytes of the record; nothing if it is large.
    #[inline]
    pub(crate) fn value<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.key_start() + usize_of(self.key_len)..][..usize_of(self.value_in_body())]
    }

    /// Returns both lengths as they are encoded; only the first 4 bytes are written if not wide.
    #[inline]
    fn lengths(&self) -> u64 {
        if self.is_wide() {
            self.key_len & LOW | self.value_len << 32
        } else {
            self.key_len | self.value_len << 16
        }
    }
}

/// Returns whether a value of this length is stored in blocks.
#[inline]
fn is_large(value_len: u64) -> bool {
    value_len > BLOCK as u64
}

#[inline]
fn padded(len: u64) -> u64 {
    len.next_multiple_of(ALIGNMENT)
}

/// Appends an unsealed record to `bytes`: of its header only the lengths are set until it is
/// sealed.
pub(crate) fn append(bytes: &mut Vec<u8>, header: &Header, key: &[u8], value: &[u8]) {
    let key_start = bytes.len() + header.key_start();
    bytes.extend_from_slice(&[0; CONTENT]);
    bytes.extend_from_slice(&header.lengths().to_le_bytes());
    bytes.truncate(key_start);
    bytes.extend_from_slice(key);
    if header.kind == Kind::Large {
        pad(bytes);
        for block in value.chunks(BLOCK) {
            append_block(bytes, block);
        }
    } else {
        bytes.extend_from_slice(value);
        pad(bytes);
    }
}

/// Appends an unsealed block of a large value.
pub(crate) fn append_block(bytes: &mut Vec<u8>, block: &[u8]) {
    bytes.extend_from_slice(block);
    pad(bytes);
    bytes.resize(bytes.len() + CHECKSUM, 0);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// Seals the record at the start of `bytes`: writes its sequence number, flags and checksums.
/// Blocks that are not in `bytes` yet are left to [`seal_block`].
pub(crate) fn seal(bytes: &mut [u8], header: &Header, position: &Position) {
    let (meta, body) = (header.meta(), usize_of(header.body()));
    let checksum = position.checksum(meta, &bytes[CONTENT..body]);
    bytes[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    bytes[CHECKSUM..CONTENT].copy_from_slice(&meta.to_le_bytes());
    let mut at = body;
    for block in block_sizes(header) {
        if let Some(block_bytes) = bytes.get_mut(at..at + block.stored) {
            seal_block(block_bytes, &position.plus(at as u64));
        }
        at += block.stored;
    }
}

/// Writes the checksum at the end of a block.
pub(crate) fn seal_block(stored: &mut [u8], position: &Position) {
    let content = stored.len() - CHECKSUM;
    let checksum = position.checksum(0, &stored[..content]);
    stored[content..].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns whether the checksum of `body`, which has [`Header::body`] bytes, matches at `position`.
#[inline]
pub(crate) fn is_sound(body: &[u8], position: &Position) -> bool {
    u64_at(body, 0) == position.checksum(u64_at(body, CHECKSUM), &body[CONTENT..])
}

/// Returns whether the checksum of a block matches.
pub(crate) fn is_sound_block(stored: &[u8], position: &Position) -> bool {
    let content = stored.len() - CHECKSUM;
    u64_at(stored, content) == position.checksum(0, &stored[..content])
}

/// Checks a body piece by piece, without having all of it in memory.
pub(crate) struct BodyCheck {
    checksum: u64,
    meta: u64,
    content: Box<Xxh3>,
}

impl BodyCheck {
    /// Starts with the first piece of the body, of at least [`HEADER`] bytes.
    pub(crate) fn new(first: &[u8]) -> Self {
        let mut content = Box::new(Xxh3::new());
        content.update(&first[CONTENT..]);
        Self { checksum: u64_at(first, 0), meta: u64_at(first, CHECKSUM), content }
    }

    /// Adds the next piece.
    pub(crate) fn update(&mut self, piece: &[u8]) {
        self.content.update(piece);
    }

    /// Returns whether the checksum matches, after the last piece.
    pub(crate) fn is_sound(&self, position: &Position) -> bool {
        self.checksum == position.checksum_of_hash(self.meta, self.content.digest())
    }
}

/// The size of a block of a large value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSize {
    /// Bytes of the value.
    pub(crate) content: usize,
    /// Bytes in the file.
    pub(crate) stored: usize,
}

/// Returns the sizes of the blocks of a large value, in order; none for another value.
pub(crate) fn block_sizes(header: &Header) -> impl Iterator<Item = BlockSize> + use<> {
    let value = if header.kind == Kind::Large { usize_of(header.value_len) } else { 0 };
    (0..value).step_by(BLOCK).map(move |start| block_size(value - start))
}

/// Returns the size of the next block if `left` bytes of the value are left.
pub(crate) fn block_size(left: usize) -> BlockSize {
    let content = left.min(BLOCK);
    BlockSize { content, stored: content.next_multiple_of(8) + CHECKSUM }
}

/// Appends a sealed mark, which says that everything before the offset `durable` is durable.
pub(crate) fn append_mark(bytes: &mut Vec<u8>, durable: u64, sequence: u64, position: &Position) {
    let header = Header { kind: Kind::Mark, more: false, sequence, key_len: 0, value_len: 8 };
    let start = bytes.len();
    append(bytes, &header, &[], &durable.to_le_bytes());
    seal(&mut bytes[start..], &header, position);
}

#[cfg(test)]
mod tests;
