//! The addresses of a table: linear hashing under cuckoo hashing. A table of one size is one that
//! has not grown: level 0, no split bucket, and fingerprints without marks.
//!
//! ```text
//!     string       = fraction | hash << r         tells keys apart, the first bit lowest
//!     index        = local << k | segment         interleaved index of a base bucket
//!     split index  = string ^ scatter(index, core)
//!     number       = index + m * (split index mod 2^level)     level + 1 if below the split
//!     bucket       = the base bucket itself if the split index is 0, otherwise number
//! ```
//!
//! * The two base buckets of a key never change: they are those that `Geometry` gave it among the m
//!   buckets that the table was built with. The string says which of the buckets that each became
//!   is meant.
//! * The table grows bucket by bucket. The next number `n` of a level is split in two, `n` and
//!   `n + m 2^level`, which is the next one behind the last. So a table grows at its end, and
//!   nothing else moves. When all buckets of a level are split, the next level begins.
//! * Base buckets are interleaved: the first one of each segment, then the second. So they are
//!   split in that order too. Otherwise only the first segment gains room until the last one
//!   splits, for both buckets of a key are in one segment.
//! * A bucket that is not split yet has twice the keys of a split one. `scatter` gives the two
//!   buckets of a key different split indices, so that many keys have one of each kind, and the
//!   search for room evens it out. So a load of 0.90 to 0.96 is possible all the way. `scatter`
//!   needs the core: differences of bases alone cancel along every path of moves, and an entry
//!   could only reach the buckets of one split index, which are few in a table that began small.
//! * An entry is the first bits of a string: as many as its bucket stands for, and those that its
//!   fingerprint stores beyond. Growth moves bits from the second part to the first. So the
//!   *length*, their sum, does not change, and names the entry whatever the table grows to.
//!
//! Source: W. Litwin, Linear Hashing (VLDB 1980); the balance between split and unsplit buckets is
//! ours (docs/decisions/0008-growth.md).

mod entries;
mod names;

use core::hint::select_unpredictable;

use crate::address::geometry::{
    CORE_BITS, Geometry, Locations, low_half, possible_entries, product, wide_product,
};
use crate::mem::vector::{Column, InstructionSet};
use crate::packing::{Marked, Widening};

/// The first bits of a string, with what else names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) core: u64,
    /// One of the two base buckets.
    pub(crate) base: u64,
    /// The bits, the first one lowest. Bits from `length` on have no meaning.
    pub(crate) string: u64,
    /// How many bits of the string count. A key has all of them.
    pub(crate) length: u32,
}

impl Prefix {
    /// Whether every key of `other`, a prefix with the same base buckets, has this prefix too.
    #[inline]
    pub(crate) fn is_start_of(&self, other: &Self) -> bool {
        self.in_common(other) == Some(self.length)
    }

    /// How many first bits two prefixes with the same base buckets share. `None` if their cores
    /// differ.
    #[inline]
    pub(crate) fn in_common(&self, other: &Self) -> Option<u32> {
        let common = (self.string ^ other.string).trailing_zeros();
        (self.core == other.core).then(|| common.min(self.length).min(other.length))
    }

    /// The two prefixes that are one bit longer.
    pub(crate) fn continuations(self) -> [Self; 2] {
        [0, 1].map(|bit| {
            let string = self.string & !(1 << self.length) | bit << self.length;
            Self { string, length: self.length + 1, ..self }
        })
    }
}

/// The addresses of a table.
#[derive(Clone)]
pub(crate) struct LinearHashing {
    /// The table as it was built.
    base: Geometry,
    marked: Marked,
    /// How often every bucket has been split.
    level: u32,
    /// Buckets below this one have been split once more.
    split: u64,
    /// The bits of a split index that a whole level uses.
    index_mask: u64,
    /// Buckets that a whole level has.
    level_buckets: u64,
    /// The bits of a base fingerprint below its core.
    fraction: u64,
    /// Bucket numbers are multiplied with these instead of divided by the number of base buckets,
    /// and by that of a segment.
    reciprocal: u64,
    segment_reciprocal: u64,
    /// Where buckets still have the slots that the table was built with.
    widening: Option<Widening>,
    /// How many buckets of a file are wide that still were to be widened when it was written.
    narrow_buckets: u64,
}

/// A bucket, and how many bits of the string it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeveledBucket {
    pub(crate) bucket: u64,
    pub(crate) level: u32,
}

/// The two buckets of a prefix; the same one twice if both base buckets are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrowingLocation {
    pub(crate) prefix: Prefix,
    pub(crate) leveled_buckets: [LeveledBucket; 2],
}

impl GrowingLocation {
    /// Both buckets, by their number in the table.
    #[inline]
    pub(crate) fn buckets(&self) -> (u64, u64) {
        (self.leveled_buckets[0].bucket, self.leveled_buckets[1].bucket)
    }
}

impl LinearHashing {
    /// The addresses of a table that has grown this far. `split` is below the buckets of `level`.
    pub(crate) fn new(base: Geometry, marked: Marked, level: u32, split: u64) -> Self {
        let level_buckets = base.buckets() << level;
        let reciprocal = u64::MAX / base.buckets();
        let segment_reciprocal = u64::MAX / u64::from(base.segment_buckets());
        let fraction = !(u64::MAX << base.fraction_bits());
        let index_mask = (1 << level) - 1;
        Self {
            base,
            marked,
            level,
            split,
            index_mask,
            level_buckets,
            fraction,
            reciprocal,
            segment_reciprocal,
            widening: None,
            narrow_buckets: 0,
        }
    }

    /// The addresses of a table that has grown to so many buckets, if there is such a table.
    pub(crate) fn grown(base: &Geometry, marked: Marked, buckets: u64) -> Option<Self> {
        let level = buckets.checked_div(base.buckets())?.checked_ilog2()?;
        let split = buckets - (base.buckets() << level);
        let is_small = u32::try_from(buckets).is_ok();
        let addresses = is_small.then(|| Self::new(base.clone(), marked, level, split));
        addresses.filter(Self::is_sound)
    }

    /// The addresses of a table of one size.
    pub(crate) fn fixed(base: Geometry) -> Self {
        let marks = Marked::none(base.fraction_bits());
        Self::new(base, marks, 0, 0)
    }

    /// Whether the table grows.
    #[inline(always)]
    pub(crate) fn grows(&self) -> bool {
        self.marked.exist()
    }

    /// The addresses that the table was built with.
    #[inline(always)]
    pub(crate) fn base(&self) -> &Geometry {
        &self.base
    }

    /// Buckets of the whole table.
    #[inline]
    pub(crate) fn buckets(&self) -> u64 {
        self.level_buckets + self.split
    }

    /// How far the widening of the buckets is, while it lasts.
    #[inline]
    pub(crate) fn widening(&self) -> Option<Widening> {
        self.widening
    }

    /// Whether a table with these addresses has grown as far as one with the others, wherever
    /// buckets are still narrow.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let grown = |it: &Self| (it.marked, it.level, it.split);
        self.base == other.base && grown(self) == grown(other)
    }

    /// The number of pairs of base buckets and cores, all equally likely.
    pub(crate) fn locations(&self) -> f64 {
        possible_entries(0, self.base.buckets())
    }

    /// Entries that match an absent key on average, of entries with this match weight. Each matches
    /// if the key has its core, one of its two base buckets and its bits.
    pub(crate) fn matches_of_an_absent_key(&self, match_weight: u128) -> f64 {
        match_weight as f64 / Self::weight_of(0) as f64 / self.locations()
    }

    /// The number of entries that keys can have, all equally likely. In a growing table, of so many
    /// `entries` with this match weight, the number that would give the same false-positive rate.
    pub(crate) fn possible_entries(&self, entries: u64, match_weight: u128) -> f64 {
        if self.grows() {
            entries.max(1) as f64 / self.matches_of_an_absent_key(match_weight)
        } else {
            possible_entries(self.base.fraction_bits(), self.base.buckets())
        }
    }

    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    pub(crate) fn split(&self) -> u64 {
        self.split
    }

    pub(crate) fn level_buckets(&self) -> u64 {
        self.level_buckets
    }

    pub(super) fn set_widening(&mut self, widening: Option<Widening>) {
        (self.widening, self.narrow_buckets) = (widening, 0);
    }

    pub(crate) fn set_narrow_buckets(&mut self, buckets: u64) {
        self.narrow_buckets = buckets;
    }

    /// How many buckets are still to be widened, whether they are narrow here or were where the
    /// bytes were written.
    pub(crate) fn narrow_buckets(&self) -> u64 {
        self.widening.map_or(self.narrow_buckets, |widening| widening.below)
    }

    /// The most bits of a string that an entry can store in a bucket, beyond those that the bucket
    /// stands for.
    #[inline]
    fn most_in(&self, bucket: u64) -> u32 {
        match self.widening.and_then(|widening| widening.narrow_at(bucket)) {
            None => self.marked.most(),
            Some(narrow) => narrow.fraction_bits(),
        }
    }

    /// The length of the longest prefix that an entry can store in a bucket.
    #[inline]
    pub(crate) fn longest_in(&self, leveled: LeveledBucket) -> u32 {
        leveled.level + self.most_in(leveled.bucket)
    }

    /// Whether the table can grow.
    pub(crate) fn can_grow(&self) -> bool {
        self.has_room(self.level + 1)
    }

    /// Whether a table can have grown this far.
    pub(crate) fn is_sound(&self) -> bool {
        self.has_room(self.level + u32::from(self.split > 0)) && self.split < self.level_buckets()
    }

    /// Whether a table of so many levels has addresses of 32 bits, and names of 64 bits for
    /// entries.
    fn has_room(&self, level: u32) -> bool {
        let buckets = u128::from(self.base.buckets()) << level.min(64);
        let name = u128::BITS - buckets.leading_zeros() + CORE_BITS + self.marked.most() + 1;
        buckets <= u128::from(u32::MAX) && name < u64::BITS
    }

    /// Counts the next bucket as split.
    pub(crate) fn advance(&mut self) {
        self.split += 1;
        if self.split == self.level_buckets {
            *self = Self::new(self.base.clone(), self.marked, self.level + 1, 0);
        }
    }

    /// The longest fingerprint that the key of `location` has in each of its buckets.
    #[inline(always)]
    pub(crate) fn keys(&self, location: &GrowingLocation) -> [u64; 2] {
        let Prefix { core, string, .. } = location.prefix;
        location.leveled_buckets.map(|leveled| self.marked.longest(core, string >> leveled.level))
    }

    /// Locates the addresses that `write` writes, in a table of buckets of `bucket_bits` bits.
    #[inline]
    pub(crate) fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        self.base.locate_many(set, 1, write, locations);
        // A loop for each, because a loop with a branch in it would not become vector code.
        if self.base.is_one_segment() {
            self.refine::<true>(set, bucket_bits, locations);
        } else {
            self.refine::<false>(set, bucket_bits, locations);
        }
    }

    /// Where the key with this address may live.
    #[inline(always)]
    pub(crate) fn located(&self, address: u64) -> GrowingLocation {
        // As in `Geometry::locate`: most growing tables began as one segment.
        if self.base.is_one_segment() {
            self.located_in::<true>(address)
        } else {
            self.located_in::<false>(address)
        }
    }

    /// [`located`](Self::located) in a table of `ONE` segment or of several.
    #[inline(always)]
    fn located_in<const ONE: bool>(&self, address: u64) -> GrowingLocation {
        let (home, rest) = self.base.home_and_rest(address);
        let bits = self.base.fraction_bits();
        let core = (rest >> bits) + 1;
        let string = rest & self.fraction | address << bits;
        let segment = if ONE { 0 } else { self.base.segment(address) };
        let local = home - self.segment_start(segment);
        let other = self.base.reflected(0, local, core);
        // Not a map over both: that would be a call, and go through the stack.
        let leveled_buckets = [
            self.leveled_in::<ONE>(segment, local, core, string),
            self.leveled_in::<ONE>(segment, other, core, string),
        ];
        let prefix = Prefix { core, base: home, string, length: u64::BITS };
        GrowingLocation { prefix, leveled_buckets }
    }

    /// Replaces the base buckets of `locations` by the buckets that they became, and writes the
    /// longest fingerprints of the keys there.
    #[inline(always)]
    fn refine<const ONE: bool>(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        locations: &mut Locations,
    ) {
        set.run(
            #[inline(always)]
            || {
                locations.refine(
                    bucket_bits,
                    #[inline(always)]
                    |address, first, buckets, fingerprint| {
                        let key = (address, fingerprint);
                        buckets.map(
                            #[inline(always)]
                            |bucket| self.refined::<ONE>(key, first, bucket),
                        )
                    },
                );
            },
        );
    }

    /// The bucket that a base bucket became for a key, in the segment that starts at `first`, and
    /// the longest fingerprint of the key there.
    #[inline(always)]
    fn refined<const ONE: bool>(
        &self,
        (address, fingerprint): (u64, u64),
        first: u64,
        bucket: u64,
    ) -> (u64, u64) {
        let bits = self.base.fraction_bits();
        let core = fingerprint >> bits;
        let string = fingerprint & self.fraction | address << bits;
        let segment = if ONE { 0 } else { self.base.segment(address) };
        let leveled = self.leveled_in::<ONE>(segment, bucket - first, core, string);
        (leveled.bucket, self.marked.longest(core, string >> leveled.level))
    }

    /// What bucket `local` of a segment became for this string.
    #[inline(always)]
    fn leveled(&self, segment: u64, local: u64, core: u64, string: u64) -> LeveledBucket {
        if self.base.is_one_segment() {
            self.leveled_in::<true>(segment, local, core, string)
        } else {
            self.leveled_in::<false>(segment, local, core, string)
        }
    }

    #[inline(always)]
    fn leveled_in<const ONE: bool>(
        &self,
        segment: u64,
        local: u64,
        core: u64,
        string: u64,
    ) -> LeveledBucket {
        let index = if ONE { local } else { self.base.interleave(segment, local) };
        let split_index = string ^ scatter(index, core);
        let buckets = self.base.buckets();
        let number = index + product(buckets, split_index & self.index_mask);
        let half = index + product(buckets, split_index & (2 * self.index_mask + 1));
        // Half of the buckets are split, so a branch would be mispredicted half of the time.
        let is_split = u64::from(number < self.split);
        let number = number ^ ((number ^ half) & is_split.wrapping_neg());
        let base = self.segment_start(segment) + local;
        let bucket =
            if ONE { number } else { select_unpredictable(number < buckets, base, number) };
        LeveledBucket { bucket, level: self.level + low_half(is_split) }
    }

    /// The segment of a base bucket.
    #[inline(always)]
    fn segment_of(&self, base: u64) -> u64 {
        if self.base.is_one_segment() { 0 } else { quotient(base, self.segment_reciprocal) }
    }

    /// The first bucket of a segment.
    #[inline(always)]
    fn segment_start(&self, segment: u64) -> u64 {
        product(segment, u64::from(self.base.segment_buckets()))
    }
}

/// The quotient of numbers of 32 bits, with a `reciprocal` of `u64::MAX / divisor`. The product is
/// (n + 1) / divisor, less at most 1 / divisor: not below the quotient, and below the next number.
#[inline(always)]
fn quotient(number: u64, reciprocal: u64) -> u64 {
    let (_, quotient) = wide_product(number + 1, reciprocal);
    quotient
}

/// Bits that differ from one interleaved index to the next and from core to core, as if drawn at
/// random: those of a sum of products that the carries reach.
#[inline(always)]
fn scatter(index: u64, core: u64) -> u64 {
    let of_core = core.wrapping_mul(0x01d8_af3c_6e2f_4d1b);
    product(index, 0x9e37_79b9).wrapping_add(of_core) >> 16
}

#[cfg(test)]
mod tests;
