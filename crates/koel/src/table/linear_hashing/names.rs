//! Where the entries of a prefix may live, and what names them.

use super::entries::Origin;
use super::{GrowingLocation, LeveledBucket, LinearHashing, Prefix};
use crate::address::geometry::Location;
use crate::packing::Layout;
use crate::table::Place;

impl LinearHashing {
    /// Where an entry with this prefix may live. `None` if the prefix is too short to tell.
    pub(crate) fn location(&self, prefix: Prefix) -> Option<GrowingLocation> {
        let bases = [prefix.base, self.other_base(&prefix)];
        let leveled_buckets = bases.map(|base| self.named_bucket(base, &prefix));
        let leveled_buckets = [
            leveled_buckets[0].or(leveled_buckets[1])?,
            leveled_buckets[1].or(leveled_buckets[0])?,
        ];
        Some(GrowingLocation { prefix, leveled_buckets })
    }

    /// Whether the prefix of a location is too short to tell one of its buckets.
    pub(crate) fn is_short(&self, location: &GrowingLocation) -> bool {
        location.leveled_buckets[0] == location.leveled_buckets[1]
            && self.other_base(&location.prefix) != location.prefix.base
    }

    /// What a fingerprint stands for in a bucket.
    #[inline]
    pub(crate) fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        if !self.grows() {
            return Location::prefix(self, bucket, fingerprint);
        }
        self.prefix_from(&self.origin(bucket), fingerprint)
    }

    /// [`prefix`](Self::prefix) in a bucket of a growing table, by where that comes from.
    #[inline]
    pub(crate) fn prefix_from(&self, from: &Origin, fingerprint: u64) -> Prefix {
        let (bits, stored) = self.marked.known(fingerprint);
        let core = self.marked.core(fingerprint);
        let string = bits << from.level | from.string(core);
        Prefix { core, base: from.base, string, length: from.level + stored }
    }

    /// Where the entry of a prefix may live in a table of one size.
    #[inline]
    pub(crate) fn fixed_location(&self, prefix: &Prefix) -> Location {
        let (base, home) = (self.segment_start(self.segment_of(prefix.base)), prefix.base);
        let alternate = self.base.reflected(base, home, prefix.core);
        Location { base, home, alternate, fingerprint: self.unmarked(prefix) }
    }

    /// The fingerprint of a prefix in a table of one size.
    #[inline]
    pub(super) fn unmarked(&self, prefix: &Prefix) -> u64 {
        let bits = self.marked.most();
        prefix.core << bits | prefix.string & !(u64::MAX << bits)
    }

    /// The length of the prefix that one of the two buckets stores for a location.
    #[inline]
    pub(crate) fn stored_length(&self, location: &GrowingLocation, which: usize) -> u32 {
        self.longest_in(location.leveled_buckets[which]).min(location.prefix.length)
    }

    /// The length of prefix that every bucket can store.
    pub(crate) fn common_length(&self) -> u32 {
        self.level + self.marked.most()
    }

    /// The probability, in units of 2^-64, that an entry of this length matches a key with its core
    /// and base bucket. 0 in a table of one size, which does not need it.
    pub(crate) fn weight(&self, length: u32) -> u128 {
        if self.grows() { Self::weight_of(length) } else { 0 }
    }

    /// [`weight`](Self::weight) in a table that grows.
    pub(crate) const fn weight_of(length: u32) -> u128 {
        (1 << u64::BITS) >> length
    }

    /// Whether a fingerprint loses bits when its entry moves to `other`, its other bucket.
    #[inline]
    pub(crate) fn loses_bits(&self, bucket: u64, fingerprint: u64, other: u64) -> bool {
        let (_, stored) = self.marked.known(fingerprint);
        self.grows() && self.level_of(bucket) + stored > self.longest_in(self.leveled_bucket(other))
    }

    /// The content that the slot of an entry has in `other`, its other bucket, and the match weight
    /// that the bits it loses there add.
    #[inline]
    pub(crate) fn moved_slot(
        &self,
        layout: Layout,
        bucket: u64,
        slot: u64,
        other: u64,
    ) -> (u64, u128) {
        if !self.grows() {
            return (slot, 0);
        }
        let prefix = self.prefix(bucket, layout.fingerprint_of(slot));
        let leveled = self.leveled_bucket(other);
        let length = self.longest_in(leveled).min(prefix.length);
        let added = Self::weight_of(length) - Self::weight_of(prefix.length);
        (layout.slot(self.fingerprint(&prefix, leveled), layout.value_of(slot)), added)
    }

    /// The other base bucket of the keys of this prefix.
    pub(crate) fn other_base(&self, prefix: &Prefix) -> u64 {
        let first = self.segment_start(self.segment_of(prefix.base));
        self.base.reflected(first, prefix.base, prefix.core)
    }

    /// The bucket that base bucket `base` has become for this prefix. `None` if the prefix is too
    /// short to tell.
    pub(crate) fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64> {
        self.named_bucket(base, prefix).map(|leveled| leveled.bucket)
    }

    /// What `base` became for this prefix. `None` if the prefix is too short to tell.
    fn named_bucket(&self, base: u64, prefix: &Prefix) -> Option<LeveledBucket> {
        if !self.grows() {
            return Some(LeveledBucket { bucket: base, level: 0 });
        }
        let segment = self.segment_of(base);
        let local = base - self.segment_start(segment);
        let leveled = self.leveled(segment, local, prefix.core, prefix.string);
        (leveled.level <= prefix.length).then_some(leveled)
    }

    /// The [name](Geometry::name) of an entry, which growth does not change.
    pub(crate) fn name(&self, prefix: &Prefix) -> u64 {
        let base = prefix.base.min(self.other_base(prefix));
        self.base.name(base, prefix.core, prefix.string, prefix.length)
    }

    /// The [order](Geometry::order) of an entry.
    #[inline]
    pub(crate) fn order(&self, prefix: &Prefix) -> u64 {
        let base = prefix.base.min(self.other_base(prefix));
        let marked = 1 << prefix.length | prefix.string & !(u64::MAX << prefix.length);
        self.base.order(base, prefix.core, marked)
    }

    /// The order of a fingerprint in a bucket of a growing table.
    #[inline(always)]
    pub(crate) fn order_from(&self, from: &Origin, fingerprint: u64) -> u64 {
        let core = self.marked.core(fingerprint);
        let other = self.base.reflected(self.segment_start(from.segment), from.base, core);
        let marked = self.marked.field(fingerprint) << from.level | from.string(core);
        self.base.order(from.base.min(other), core, marked)
    }

    /// The zeros at the end of all orders.
    pub(crate) fn end_of_orders(&self) -> u32 {
        let beyond =
            (self.level + 1 + self.marked.most()).saturating_sub(self.base.fraction_bits());
        self.base.end_of_names().saturating_sub(if self.grows() { beyond } else { 0 })
    }

    /// The prefix with this order, which is that of an entry.
    #[inline]
    pub(crate) fn ordered(&self, order: u64) -> Prefix {
        let (base, core, string, length) = self.base.ordered(order);
        Prefix { core, base, string, length }
    }

    /// The prefix of an entry with this order, if there can be one.
    pub(crate) fn try_ordered(&self, order: u64) -> Option<Prefix> {
        let (.., length) = self.base.named(order)?;
        let is_whole = self.grows() || length == self.marked.most();
        let prefix = self.ordered(order);
        (is_whole && self.order(&prefix) == order).then_some(prefix)
    }

    /// Where an entry with this prefix may live and keep all its bits.
    pub(crate) fn whole_location(&self, prefix: Prefix) -> Option<GrowingLocation> {
        let at = self.location(prefix)?;
        let whole = at.leveled_buckets.map(|it| self.longest_in(it) >= prefix.length);
        let [one, other] = at.leveled_buckets;
        let leveled_buckets = match whole {
            [true, true] => [one, other],
            [true, false] => [one; 2],
            [false, true] => [other; 2],
            [false, false] => return None,
        };
        Some(GrowingLocation { prefix, leveled_buckets })
    }

    /// The prefix with this name, if there is one.
    pub(crate) fn named(&self, name: u64) -> Option<Prefix> {
        let (base, core, string, length) = self.base.named(name)?;
        let is_whole = self.grows() || length == self.marked.most();
        let prefix = Prefix { core, base, string, length };
        (is_whole && self.name(&prefix) == name).then_some(prefix)
    }
}
