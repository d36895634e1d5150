//! The addressing of a growing table: entries differ in length, and a key has a fingerprint for
//! each of its buckets.

use super::{GrowingLocation, LinearHashing};
use crate::address::geometry::{CORE_BITS, Geometry, Locations};
use crate::mem::vector::{Column, InstructionSet};
use crate::packing::{Layout, Prefixed, SLOTS, Widening};
use crate::table::{Addressing, Prefix};

/// An entry matches the keys that begin with its prefix.
impl Addressing for LinearHashing {
    type Matching = Prefixed;
    type Location = GrowingLocation;
    const GROWS: bool = true;

    fn base(&self) -> &Geometry {
        &self.base
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.level_buckets + self.split
    }

    #[inline]
    fn widening(&self) -> Option<Widening> {
        self.widening
    }

    #[inline]
    fn locate_many(
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

    /// Not inlined, so that changes of tables of one size save no register for it.
    #[inline(never)]
    fn locate(&self, address: u64) -> GrowingLocation {
        self.located(address)
    }

    #[inline]
    fn locate_in_block(&self, locations: &Locations, i: usize) -> GrowingLocation {
        self.locate(locations.address(i))
    }

    fn location(&self, prefix: Prefix) -> Option<GrowingLocation> {
        let bases = [prefix.base, self.other_base(&prefix)];
        let leveled_buckets = bases.map(|base| self.named_bucket(base, &prefix));
        let leveled_buckets = [
            leveled_buckets[0].or(leveled_buckets[1])?,
            leveled_buckets[1].or(leveled_buckets[0])?,
        ];
        Some(GrowingLocation { prefix, leveled_buckets })
    }

    fn relocate(&self, location: &GrowingLocation) -> GrowingLocation {
        self.location(location.prefix).unwrap_or(*location)
    }

    #[inline]
    fn pair(location: &GrowingLocation) -> (u64, u64) {
        location.buckets()
    }

    /// The origin of a bucket tells its segment.
    #[inline]
    fn segment_start(_: &GrowingLocation) -> u64 {
        0
    }

    #[inline]
    fn fingerprints(&self, location: &GrowingLocation) -> [u64; 2] {
        location.leveled_buckets.map(|leveled| self.fingerprint(&location.prefix, leveled))
    }

    /// What matches a fingerprint may have more bits than the prefix.
    #[inline]
    fn is_match(location: &GrowingLocation, prefix: &Prefix) -> bool {
        prefix.is_start_of(&location.prefix)
    }

    fn is_short(&self, location: &GrowingLocation) -> bool {
        location.leveled_buckets[0] == location.leveled_buckets[1]
            && self.other_base(&location.prefix) != location.prefix.base
    }

    #[inline]
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        let from = self.origin(bucket);
        let (bits, stored) = self.marked.known(fingerprint);
        let core = self.marked.core(fingerprint);
        let string = bits << from.level | from.string(core);
        Prefix { core, base: from.base, string, length: from.level + stored }
    }

    #[inline]
    fn stored_length(&self, location: &GrowingLocation, which: usize) -> u32 {
        self.longest_in(location.leveled_buckets[which]).min(location.prefix.length)
    }

    fn common_length(&self) -> u32 {
        self.level + self.marked.most()
    }

    #[inline(always)]
    fn other_buckets(
        &self,
        layout: Layout,
        _: u64,
        bucket: u64,
        mut slots: [u64; SLOTS],
    ) -> [u64; SLOTS] {
        let origin = self.origin(bucket);
        for slot in &mut slots {
            *slot = self.other_bucket(&origin, layout.fingerprint_of(*slot));
        }
        slots
    }

    #[inline]
    fn loses_bits(&self, bucket: u64, fingerprint: u64, other: u64) -> bool {
        let (_, stored) = self.marked.known(fingerprint);
        self.level_of(bucket) + stored > self.longest_in(self.leveled_bucket(other))
    }

    #[inline]
    fn moved_slot(&self, layout: Layout, bucket: u64, slot: u64, other: u64) -> (u64, u128) {
        let prefix = self.prefix(bucket, layout.fingerprint_of(slot));
        let leveled = self.leveled_bucket(other);
        let length = self.longest_in(leveled).min(prefix.length);
        let added = Self::weight_of(length) - Self::weight_of(prefix.length);
        (layout.slot(self.fingerprint(&prefix, leveled), layout.value_of(slot)), added)
    }

    fn other_base(&self, prefix: &Prefix) -> u64 {
        let first = self.segment_start(self.segment_of(prefix.base));
        self.base.reflected(first, prefix.base, prefix.core)
    }

    fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64> {
        self.named_bucket(base, prefix).map(|leveled| leveled.bucket)
    }

    fn identity(&self, prefix: &Prefix) -> u64 {
        let string = 1 << prefix.length | prefix.string & !(u64::MAX << prefix.length);
        let base = prefix.base.min(self.other_base(prefix));
        (string << CORE_BITS | prefix.core) * self.base.buckets() + base
    }

    fn named(&self, identity: u64) -> Option<Prefix> {
        let (base, rest) = (identity % self.base.buckets(), identity / self.base.buckets());
        let (core, marked) = (rest & !(u64::MAX << CORE_BITS), rest >> CORE_BITS);
        let length = u64::BITS.checked_sub(marked.leading_zeros() + 1)?;
        let prefix = Prefix { core, base, string: marked ^ 1 << length, length };
        (core > 0 && self.identity(&prefix) == identity).then_some(prefix)
    }
}
