//! Where a key may live in a table that grows: linear hashing under cuckoo hashing.
//!
//! ```text
//!     string    = fraction | hash << r          what tells keys apart, the first bit lowest
//!     turn      = local << k | segment          base: one of the m buckets as built, in turn
//!     world     = string ^ scatter(turn, core)
//!     number    = turn + m * (world mod 2^level)      level + 1 where that is below the split
//!     bucket    = the base itself in the first world, then number
//! ```
//!
//! * The base buckets of all segments are numbered in turn, the first one of each, then the second:
//!   so they are split in turn too. Both buckets of a key are in one segment, and in a table whose
//!   segments were split one after the other, none but the first would have room before the last is
//!   split.
//! * The table grows bucket by bucket: the next number `n` of a level is split in two, `n` and `n +
//!   m 2^level`, which is the next one behind the last. So a table grows at its end, and nothing
//!   else moves: the buckets that it was built with, the first world, stay where they were. When
//!   all buckets of a level are split, the next level begins.
//! * The two base buckets of a key never change: they are those that `Geometry` gave it when the
//!   table was built. Its string says which of the buckets that each became is meant.
//! * A bucket not yet split has twice the keys of a split one. `scatter` gives the two buckets of a
//!   key different worlds, so that many keys have one of each kind, and the search for room evens
//!   it out: the load stays between 0.90 and 0.96 all the way. It needs the core: of bases alone
//!   the differences cancel along every path of moves, and an entry could only reach the buckets of
//!   one world, which are few in a table that began small.
//! * An entry is the first bits of a string: as many as its bucket stands for, and those that it
//!   knows beyond. Growth moves bits from the second part to the first, so its *length*, the sum,
//!   stays the same, and names it whatever the table grows to.
//!
//! Source: W. Litwin, Linear Hashing (VLDB 1980); the balance between split and unsplit buckets is
//! ours (docs/decisions/0008-growth.md).

mod addressing;
mod entries;

use core::hint::select_unpredictable;

use super::Prefix;
use crate::address::geometry::{CORE_BITS, CORES, Geometry, Locations, low_half, product};
use crate::address::wide_product::wide_product;
use crate::mem::vector::InstructionSet;
use crate::packing::{Marked, Widening};

/// The addresses of a table that grows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LinearHashing {
    /// The table as it was built.
    base: Geometry,
    marked: Marked,
    /// How often every bucket has been split.
    level: u32,
    /// Buckets below this one have been split once more.
    split: u64,
    /// What a whole level has: worlds, and buckets.
    worlds: u64,
    level_buckets: u64,
    /// The bits of a fingerprint of the table as it was built that are not of its core.
    fraction: u64,
    /// What bucket numbers are multiplied with instead of dividing them by the buckets of the table
    /// as it was built, and by those of a segment of it.
    reciprocal: u64,
    segment_reciprocal: u64,
    /// Where buckets still have the slots that the table was built with.
    widening: Option<Widening>,
}

/// A segment of the table as it was built.
#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    /// Its first bucket.
    first: u64,
}

impl Segment {
    /// The one of a table that has no other.
    const ONLY: Self = Self { number: 0, first: 0 };
}

/// A bucket, and how many bits of the string it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeveledBucket {
    pub(crate) bucket: u64,
    pub(crate) level: u32,
}

/// The two buckets of a prefix; the same one twice where both bases are one.
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
    /// The addresses of a table that has grown so far: `split` is below the buckets of `level`.
    pub(crate) fn new(base: Geometry, marked: Marked, level: u32, split: u64) -> Self {
        let level_buckets = base.buckets() << level;
        let reciprocal = u64::MAX / base.buckets();
        let segment_reciprocal = u64::MAX / u64::from(base.segment_buckets());
        let fraction = !(u64::MAX << base.fraction_bits());
        let worlds = 1 << level;
        Self {
            base,
            marked,
            level,
            split,
            worlds,
            level_buckets,
            fraction,
            reciprocal,
            segment_reciprocal,
            widening: None,
        }
    }

    /// How many pairs of base buckets and cores there are, all equally likely.
    pub(crate) fn locations(&self) -> f64 {
        CORES as f64 * self.base.buckets() as f64 / 2.0
    }

    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    pub(crate) fn split(&self) -> u64 {
        self.split
    }

    /// Buckets that a whole level has.
    pub(crate) fn level_buckets(&self) -> u64 {
        self.level_buckets
    }

    pub(super) fn set_widening(&mut self, widening: Option<Widening>) {
        self.widening = widening;
    }

    /// The most bits of a string that an entry can know in a bucket, beyond those that the bucket
    /// stands for.
    #[inline]
    fn most_in(&self, bucket: u64) -> u32 {
        match self.widening.and_then(|widening| widening.narrow_at(bucket)) {
            None => self.marked.most(),
            Some(narrow) => narrow.fraction_bits(),
        }
    }

    /// How long the prefix of an entry can be in a bucket.
    #[inline]
    pub(crate) fn longest_in(&self, leveled: LeveledBucket) -> u32 {
        leveled.level + self.most_in(leveled.bucket)
    }

    /// Whether the table can grow.
    pub(crate) fn can_grow(&self) -> bool {
        self.has_room(self.level + 1)
    }

    /// Whether a table can have grown like this.
    pub(crate) fn is_sound(&self) -> bool {
        self.has_room(self.level + u32::from(self.split > 0)) && self.split < self.level_buckets()
    }

    /// Whether a table of so many levels has addresses of 32 bits, and names of 64 for its entries.
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

    #[inline(always)]
    fn located(&self, segment: Segment, hash: u64) -> GrowingLocation {
        let (home, rest) = self.base.home_and_rest(hash);
        let bits = self.base.fraction_bits();
        let core = (rest >> bits) + 1;
        let string = rest & self.fraction | hash << bits;
        let local = home - segment.first;
        let other = self.base.reflected(0, local, core);
        let leveled_buckets = [
            self.leveled(segment, local, core, string),
            self.leveled(segment, other, core, string),
        ];
        GrowingLocation {
            prefix: Prefix { core, base: home, string, length: u64::BITS },
            leveled_buckets,
        }
    }

    /// Puts the buckets that the base buckets of `locations` became in their place, and what stands
    /// for the keys there, in a table of `ONE` segment or of several.
    #[inline(always)]
    fn refine<const ONE: bool>(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        locations: &mut Locations,
    ) {
        let bits = self.base.fraction_bits();
        set.run(
            #[inline(always)]
            || {
                locations.refine(
                    bucket_bits,
                    #[inline(always)]
                    |hash, first, buckets, fingerprint| {
                        let core = fingerprint >> bits;
                        let string = fingerprint & self.fraction | hash << bits;
                        buckets.map(
                            #[inline(always)]
                            |bucket| {
                                let leveled = if ONE {
                                    self.numbered(bucket, core, string)
                                } else {
                                    let segment =
                                        Segment { number: self.base.segment(hash), first };
                                    self.dealt(segment, bucket - first, core, string)
                                };
                                (leveled.bucket, self.marked.longest(core, string >> leveled.level))
                            },
                        )
                    },
                );
            },
        );
    }

    /// What bucket `local` of a segment became for this string.
    #[inline(always)]
    fn leveled(&self, segment: Segment, local: u64, core: u64, string: u64) -> LeveledBucket {
        if self.base.is_one_segment() {
            self.numbered(local, core, string)
        } else {
            self.dealt(segment, local, core, string)
        }
    }

    /// The same in a table of several segments: in one of a single segment, buckets have their
    /// numbers in turn.
    #[inline(always)]
    fn dealt(&self, segment: Segment, local: u64, core: u64, string: u64) -> LeveledBucket {
        let leveled = self.numbered(self.base.interleave(segment.number, local), core, string);
        let is_first = leveled.bucket < self.base.buckets();
        let bucket = select_unpredictable(is_first, segment.first + local, leveled.bucket);
        LeveledBucket { bucket, ..leveled }
    }

    /// The same for the base bucket with this number in turn, and the number of what it became.
    #[inline(always)]
    fn numbered(&self, turn: u64, core: u64, string: u64) -> LeveledBucket {
        let world = string ^ scatter(turn, core);
        let buckets = self.base.buckets();
        // Not a map over both, here and in `located`: that would be a call, and go through the
        // stack.
        let number = turn + product(buckets, world & (self.worlds - 1));
        let half = turn + product(buckets, world & (2 * self.worlds - 1));
        // Half of the buckets are split, so a branch would be taken wrongly half of the time.
        let is_split = u64::from(number < self.split);
        let bucket = number ^ ((number ^ half) & is_split.wrapping_neg());
        LeveledBucket { bucket, level: self.level + low_half(is_split) }
    }

    /// The bucket that `base` became for this prefix, if it is long enough to say.
    pub(crate) fn named_bucket(&self, base: u64, prefix: &Prefix) -> Option<LeveledBucket> {
        let segment = self.segment_of(base);
        let leveled = self.leveled(segment, base - segment.first, prefix.core, prefix.string);
        (leveled.level <= prefix.length).then_some(leveled)
    }

    /// The segment that a hash is in.
    #[inline(always)]
    fn segment_of_address(&self, address: u64) -> Segment {
        Segment { number: self.base.segment(address), first: self.base.segment_start(address) }
    }

    /// The segment of a base bucket.
    #[inline(always)]
    fn segment_of(&self, base: u64) -> Segment {
        if self.base.is_one_segment() {
            return Segment::ONLY;
        }
        self.segment(quotient(base, self.segment_reciprocal))
    }

    #[inline(always)]
    fn segment(&self, number: u64) -> Segment {
        Segment { number, first: number * u64::from(self.base.segment_buckets()) }
    }
}

/// The quotient of numbers of 32 bits, by `u64::MAX` over the divisor: n + 1 over it, less at most
/// 1 over it, is not below the quotient and below the next number.
#[inline(always)]
fn quotient(number: u64, reciprocal: u64) -> u64 {
    let (_, quotient) = wide_product(number + 1, reciprocal);
    quotient
}

/// Bits that differ from base bucket to base bucket, here by its number in turn, and from core to
/// core, as if drawn by lot: of a sum of products, those that the carries reach.
#[inline(always)]
fn scatter(turn: u64, core: u64) -> u64 {
    let of_core = core.wrapping_mul(0x01d8_af3c_6e2f_4d1b);
    product(turn, 0x9e37_79b9).wrapping_add(of_core) >> 16
}

#[cfg(test)]
mod tests;
