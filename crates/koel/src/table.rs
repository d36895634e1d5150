//! The cuckoo table: buckets in a row of bytes, each entry in one of its two buckets.
//!
//! ```text
//!     | bucket 0 | bucket 1 | ... | bucket N-1 | zeros up to a multiple of 8 bytes | 16 bytes of zeros |
//! ```
//!
//! The zeros at the end let every bucket be read as a whole register. A lookup loads both buckets before it looks at either, so
//! that the two cache misses overlap. All methods speak of single entries in single buckets; who may move where is `placement.rs`.

use crate::buffer::Buffer;
use crate::geometry::{Column, Geometry, Places};
use crate::layout::{Apart, Bucket, Form, LATER, Lanes, Layout, Quad, SLOTS, Word};
use crate::prefetch::prefetch;
use crate::vector::InstructionSet;

/// Calls the method in the form of the table's lanes: `method::<register, semi-sorted>(arguments)`; `method::<CONSTANT>` has that behind these two.
macro_rules! in_form {
    ($table:expr, $method:ident $(::<$constant:ident>)? ($($argument:expr),*)) => {
        in_form!(
            $table, $method $(::<$constant>)? ($($argument),*),
            unreachable!("a table of one size is not being widened")
        )
    };
    ($table:expr, $method:ident $(::<$constant:ident>)? ($($argument:expr),*), $apart:expr) => {
        match $table.form() {
            Form::Plain => $table.$method::<u64, false $(, $constant)?>($($argument),*),
            Form::Sorted => $table.$method::<u64, true $(, $constant)?>($($argument),*),
            Form::WidePlain => $table.$method::<u128, false $(, $constant)?>($($argument),*),
            Form::WideSorted => $table.$method::<u128, true $(, $constant)?>($($argument),*),
            Form::Quad => $table.$method::<Quad, false $(, $constant)?>($($argument),*),
            Form::Apart => $apart,
        }
    };
}

/// The same for what is asked of tables that grow too.
macro_rules! in_any_form {
    ($table:expr, $method:ident $(::<$constant:ident>)? ($($argument:expr),*)) => {
        in_form!(
            $table, $method $(::<$constant>)? ($($argument),*),
            $table.$method::<Apart, false $(, $constant)?>($($argument),*)
        )
    };
}

mod at;
mod block;
mod candidates;
mod cuckoo;
mod edit;
mod fixed;
mod growing;
mod grown;
mod load;
mod matches;
mod pair;
mod plans;
mod room;
mod stretch;
mod widening;

pub(crate) use at::{At, Put, Taken};
pub(crate) use block::{Buckets, Words};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use block::{asked_ahead, is_near, test};
pub(crate) use candidates::Candidates;
pub(crate) use cuckoo::{Cuckoo, CuckooMut, EntryTest, Location, Removed, grows};
use edit::change_in;
pub(crate) use growing::Growing;
pub(crate) use load::{FULL_LOAD, has_room_for};
pub(crate) use matches::{Match, Prefixes};
pub(crate) use pair::{Pair, either};
pub(crate) use plans::Plans;
pub(crate) use stretch::{Prefix, Site, Spot, Stretch};
pub(crate) use widening::Widening;

/// Zeros behind the last bucket, so that it can be read like any other.
const PADDING: usize = 16;

/// So many bytes from the one that a wide bucket starts in are in the table: it has more than 8 itself, and the padding follows.
const WIDE_BYTES: usize = 8 + PADDING;

/// Bytes of a table of `buckets` buckets; `None` where no machine could address them.
pub(crate) fn table_bytes(layout: Layout, buckets: u64) -> Option<usize> {
    let bits = buckets.checked_mul(u64::from(layout.bucket_bits()))?;
    let words = usize::try_from(bits.div_ceil(64)).ok()?;
    words.checked_mul(8)?.checked_add(PADDING).filter(|&bytes| isize::try_from(bytes).is_ok())
}

/// Buckets and their shape. The addressing `A` says where a key may live: [`Geometry`] in a table of one size, `Stretch` in one that grows.
#[derive(Clone, PartialEq)]
pub(crate) struct Table<B, A = Geometry> {
    geometry: A,
    layout: Layout,
    lanes: Lanes,
    /// The lanes of a part of a bucket, where buckets are wider than 64 bits.
    part: Lanes,
    bytes: B,
}

/// Where the keys of a table may live, and which entries match a key there.
pub(crate) trait Addressing: Clone {
    /// Buckets of the whole table.
    fn buckets(&self) -> u64;

    /// How far the table is, if its buckets are being widened.
    fn widening(&self) -> Option<&Widening> {
        None
    }

    /// The places of the hashes that `hash` writes, in buckets of so many bits.
    fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    );

    /// What entries in the one and the other bucket of place `i` are compared with.
    fn keys(places: &Places, i: usize) -> [u64; 2];

    /// The top bit of every lane that matches the key.
    fn matching<W: Word, const SORTED: bool>(lanes: &Lanes, word: W, key: u64) -> W;

    /// Whether a lane of either word, each beside its nibbles, matches its key. No branch on the data; both words at once in the vector unit.
    fn pair_matches<const SORTED: bool>(
        lanes: &Lanes,
        words: [(u64, u64); 2],
        keys: [u64; 2],
    ) -> bool;

    /// Whether a lane of either word, each beside its nibbles, matches its key: as 1 or 0, by arithmetic alone, for vector code.
    fn matching_byte<const SORTED: bool>(
        lanes: &Lanes,
        words: [(u64, u64); 2],
        keys: [u64; 2],
    ) -> u8;
}

/// Whatever the addressing.
impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The table in `bytes`, which are as many as [`table_bytes`] says.
    pub(crate) fn new(geometry: A, layout: Layout, bytes: B) -> Self {
        assert_eq!(Some(bytes.as_ref().len()), table_bytes(layout, geometry.buckets()));
        let is_midway = geometry.widening().is_some();
        let lanes = if is_midway { Lanes::apart(layout) } else { Lanes::new(layout) };
        let part = Lanes::of_part(layout);
        Self { geometry, layout, lanes, part, bytes }
    }

    pub(crate) fn geometry(&self) -> &A {
        &self.geometry
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Which piece of code serves the buckets.
    #[inline(always)]
    fn form(&self) -> Form {
        self.lanes.form()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The buckets at `bits`, and where `slot` is in them.
    #[inline(always)]
    fn pair<W: Word, const SORTED: bool>(&self, bits: [u64; 2], slot: u64) -> Pair<W> {
        let words = load_both::<W, SORTED>(self.bytes.as_ref(), bits);
        Pair::new::<SORTED>(&self.lanes, words, bits[0] == bits[1], slot)
    }

    /// Asks the memory for the bucket that starts at bit `bit`: for the first byte that is read of it and for the last one, which may be in another cache line, even where the bucket
    /// itself ends before.
    #[inline(always)]
    fn prefetch(&self, bit: u64) {
        self.prefetch_from(byte_index(bit / 8));
    }

    /// The same for a bucket that starts in this byte.
    #[inline(always)]
    fn prefetch_from(&self, byte: usize) {
        for byte in [byte, byte + self.lanes.reach()] {
            prefetch(self.bytes.as_ref(), byte);
        }
    }

    /// Asks the memory for the byte that bit `bit` is in.
    #[inline(always)]
    fn prefetch_byte(&self, bit: u64) {
        prefetch(self.bytes.as_ref(), byte_index(bit / 8));
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        Bucket(in_any_form!(self, slots_in(bucket)))
    }

    /// Whether a bucket is wide and all its lanes are one part: then it is read as a [`whole`](Self::whole).
    #[inline(always)]
    fn is_one_part<W: Word, const SORTED: bool>(&self) -> bool {
        W::BITS == u128::BITS && SORTED && self.part.are_all()
    }

    #[inline(always)]
    fn slots_in<W: Word, const SORTED: bool>(&self, bucket: u64) -> [u64; SLOTS] {
        if self.is_one_part::<W, SORTED>() {
            self.part.slots_beside::<u64, SORTED>(self.whole(bucket))
        } else if W::BITS == u128::BITS {
            self.lanes.slots_of::<SORTED>(self.halves::<SORTED>(bucket))
        } else {
            self.lanes.slots::<W, SORTED>(self.load::<W, SORTED>(bucket))
        }
    }

    /// Whether a slot of `bucket` is empty.
    #[inline(always)]
    fn has_room_in<W: Word, const SORTED: bool>(&self, bucket: u64) -> bool {
        if !W::IS_STORED {
            self.lanes.has_room::<W, SORTED>(self.load::<W, SORTED>(bucket))
        } else {
            self.has_room_at::<W, SORTED>(bucket * self.lanes.bucket_bits())
        }
    }

    /// The same for a bucket that starts at bit `bit` of the table.
    #[inline(always)]
    fn has_room_at<W: Word, const SORTED: bool>(&self, bit: u64) -> bool {
        if W::BITS == u128::BITS && SORTED {
            self.lanes.has_room::<u64, SORTED>(self.load_at::<u64, SORTED>(bit))
        } else if W::BITS == u128::BITS {
            let [lower, upper] = self.empty_halves_at::<SORTED>(bit);
            (lower | upper) != 0
        } else {
            self.lanes.has_room::<W, SORTED>(self.load_at::<W, SORTED>(bit))
        }
    }

    /// How many slots of `bucket` are empty.
    #[inline(always)]
    fn vacancies_in<W: Word, const SORTED: bool>(&self, bucket: u64) -> u64 {
        if self.is_one_part::<W, SORTED>() {
            self.part.count(self.part.empty::<u64, false>(self.whole(bucket).0))
        } else if W::BITS == u128::BITS {
            let bit = bucket * self.lanes.bucket_bits();
            self.empty_halves_at::<SORTED>(bit).map(|tops| self.part.count(tops)).iter().sum()
        } else {
            self.lanes.count(self.lanes.empty::<W, SORTED>(self.load::<W, SORTED>(bucket)))
        }
    }

    /// The top bit of every empty lane in the halves of a wide bucket, whose lanes all have their core or their mark.
    #[inline(always)]
    fn empty_halves_at<const SORTED: bool>(&self, bit: u64) -> [u64; 2] {
        self.halves_at::<SORTED>(bit).map(|(word, _)| self.part.empty::<u64, false>(word))
    }

    /// The bucket as it is stored, in a table without values: with them, it may have more bits.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        self.load::<u128, true>(bucket) & self.lanes.bucket::<u128>()
    }

    /// A register that starts with the bucket; bits of the next one may follow.
    #[inline(always)]
    fn load<W: Word, const SORTED: bool>(&self, bucket: u64) -> W {
        if !W::IS_STORED {
            let slots = self.slots_apart(bucket).map(u64::to_le_bytes);
            return W::read(slots.as_flattened(), 0);
        }
        self.load_at::<W, SORTED>(bucket * self.lanes.bucket_bits())
    }

    /// The same for a bucket that starts at bit `bit` of the table.
    #[inline(always)]
    fn load_at<W: Word, const SORTED: bool>(&self, bit: u64) -> W {
        load_from::<W, SORTED>(self.bytes.as_ref(), bit)
    }

    /// Both, loaded before either is looked at, so that the cache misses overlap.
    #[inline(always)]
    fn load_pair<W: Word, const SORTED: bool>(&self, (home, alternate): (u64, u64)) -> [W; 2] {
        [home, alternate].map(|bucket| self.load::<W, SORTED>(bucket))
    }

    /// What is at so many bits from the start of the wide bucket that starts at bit `bit`, from the byte that holds it, and which of its bits that is.
    #[inline(always)]
    fn reads_at<const SORTED: bool>(&self, bit: u64) -> impl Fn(u64) -> (u64, u32) {
        let (byte, shift) = position::<SORTED>(bit);
        let range = byte..byte + WIDE_BYTES;
        let bytes: &[u8; WIDE_BYTES] =
            self.bytes.as_ref()[range].try_into().expect("a range of so many bytes");
        move |offset| {
            let bit = u64::from(shift) + offset;
            // The remainder is the number itself, of a bit among 128, and says so to the compiler: one check of the table's length is enough for all parts.
            (u64::read(bytes, byte_index(bit / 8) % (WIDE_BYTES - 8)), shift_of(bit))
        }
    }

    /// The halves of the wide bucket that starts at bit `bit`, each from the byte that it starts in, and the nibbles of both.
    #[inline(always)]
    fn raw_halves_at<const SORTED: bool>(&self, bit: u64) -> [u64; 3] {
        let read = self.reads_at::<SORTED>(bit);
        let (code, shift) = if SORTED { read(2 * self.lanes.half()) } else { (0, 0) };
        [read(0).0, read(self.lanes.half()).0, Lanes::nibbles_at::<SORTED>(code, shift)]
    }

    /// All lanes of a bucket that is [one part](Self::is_one_part), beside their nibbles.
    #[inline(always)]
    fn whole(&self, bucket: u64) -> (u64, u64) {
        self.whole_by(bucket, |byte| u64::read(self.bytes.as_ref(), byte))
    }

    /// The same, where `read` gives the eight bytes from a byte of the table on. Ten bytes from the start of the bucket are read.
    #[inline(always)]
    fn whole_by(&self, bucket: u64, read: impl Fn(usize) -> u64) -> (u64, u64) {
        let (byte, shift) = position::<true>(bucket * self.lanes.bucket_bits());
        self.part.whole([read(byte), read(byte + LATER)], shift)
    }

    /// The halves of a wide bucket, each beside its nibbles.
    #[inline(always)]
    fn halves<const SORTED: bool>(&self, bucket: u64) -> [(u64, u64); 2] {
        self.halves_at::<SORTED>(bucket * self.lanes.bucket_bits())
    }

    /// The same for a bucket that starts at bit `bit` of the table.
    #[inline(always)]
    fn halves_at<const SORTED: bool>(&self, bit: u64) -> [(u64, u64); 2] {
        let read = self.reads_at::<SORTED>(bit);
        self.lanes.halves::<SORTED>(|offset| {
            let (bits, shift) = read(offset);
            bits >> shift
        })
    }

    /// Whether a bucket of a pair has an entry that matches its key. No branch on the data: both buckets at once in a vector register, or a wide one after the other, half by
    /// half, where its lanes do not fit into one of 64 bits.
    #[inline(always)]
    fn pair_matches_in<W: Word, const SORTED: bool>(
        &self,
        pair: (u64, u64),
        keys: [u64; 2],
    ) -> bool {
        let read = |byte: usize| u64::read(self.bytes.as_ref(), byte);
        self.pair_matches_by::<W, SORTED>(pair, keys, read)
    }

    /// The same, where `read` gives the eight bytes from a byte of the table on, for buckets of one register of 64 bits or one part: at most ten bytes from the start of each are
    /// read so.
    #[inline(always)]
    fn pair_matches_by<W: Word, const SORTED: bool>(
        &self,
        pair: (u64, u64),
        keys: [u64; 2],
        read: impl Fn(usize) -> u64,
    ) -> bool {
        if W::BITS == u64::BITS {
            let word = |bucket: u64| {
                let (byte, shift) = position::<SORTED>(bucket * self.lanes.bucket_bits());
                read(byte) >> shift
            };
            let words = self.lanes.opened::<SORTED>([word(pair.0), word(pair.1)]);
            A::pair_matches::<SORTED>(&self.lanes, words, keys)
        } else if self.is_one_part::<W, SORTED>() {
            let words = [self.whole_by(pair.0, &read), self.whole_by(pair.1, &read)];
            A::pair_matches::<SORTED>(&self.part, words, keys)
        } else if W::BITS == u128::BITS {
            let (home, other) = (self.halves::<SORTED>(pair.0), self.halves::<SORTED>(pair.1));
            A::pair_matches::<SORTED>(&self.part, home, [keys[0]; 2])
                | A::pair_matches::<SORTED>(&self.part, other, [keys[1]; 2])
        } else {
            let [home, other] = self.load_pair::<W, SORTED>(pair);
            let matching = |word, key| A::matching::<W, SORTED>(&self.lanes, word, key);
            (matching(home, keys[0]) | matching(other, keys[1])) != W::ZERO
        }
    }

    /// The same table in memory of its own, to grow in if it `grows`.
    pub(crate) fn to_owned_table(&self, grows: bool) -> Table<Buffer, A> {
        Table::new(self.geometry.clone(), self.layout, Buffer::copy_of(self.bytes(), grows))
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        let (byte, shift) = position::<true>(self.lanes.bucket_bits() * self.geometry.buckets());
        self.bytes()[byte] >> shift == 0 && self.bytes()[byte + 1..].iter().all(|&byte| byte == 0)
    }

    /// All buckets in order, decoded.
    #[cfg(any(test, all(feature = "std", target_has_atomic = "64")))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        (0..self.geometry.buckets()).map(|bucket| self.read(bucket))
    }
}

/// A register that starts with the bucket at bit `bit` of these bytes.
#[inline(always)]
fn load_from<W: Word, const SORTED: bool>(bytes: &[u8], bit: u64) -> W {
    let (byte, shift) = position::<SORTED>(bit);
    W::read(bytes, byte) >> shift
}

/// Both buckets of a pair. Not a map: that would go through the stack.
#[inline(always)]
fn load_both<W: Word, const SORTED: bool>(bytes: &[u8], [home, other]: [u64; 2]) -> [W; 2] {
    [load_from::<W, SORTED>(bytes, home), load_from::<W, SORTED>(bytes, other)]
}

/// The byte that a bucket at bit `bit` starts in, and at which of its bits: 0 or 4, always 0 where buckets are plain.
#[inline(always)]
fn position<const SORTED: bool>(bit: u64) -> (usize, u32) {
    (byte_index(bit / 8), if SORTED { shift_of(bit) } else { 0 })
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the table is in memory, so its offsets fit")]
fn byte_index(byte: u64) -> usize {
    byte as usize
}

/// Where in its byte a bit is.
#[inline(always)]
fn shift_of(bit: u64) -> u32 {
    (bit % 8) as u32
}
