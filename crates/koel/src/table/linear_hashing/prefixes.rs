//! The prefixes of a growing table: entries differ in length, and a key has a fingerprint for each
//! of its buckets.

use super::{GrowingLocation, LinearHashing, Segment};
use crate::address::geometry::{CORE_BITS, Geometry};
use crate::table::{Prefix, Prefixes};

impl Prefixes for LinearHashing {
    type Location = GrowingLocation;
    const GROWS: bool = true;

    fn base(&self) -> &Geometry {
        &self.base
    }

    #[inline(always)]
    fn locate(&self, hash: u64) -> GrowingLocation {
        // As in `Geometry::locate`: tables that grow mostly began as one segment.
        if self.base.is_one_segment() {
            self.located(Segment::ONLY, hash)
        } else {
            self.located(self.segment_of_hash(hash), hash)
        }
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

    #[inline(always)]
    fn pair(location: &GrowingLocation) -> (u64, u64) {
        location.buckets()
    }

    #[inline(always)]
    fn fingerprints(&self, location: &GrowingLocation) -> [u64; 2] {
        location.leveled_buckets.map(|leveled| self.fingerprint(&location.prefix, leveled))
    }

    /// What matches a fingerprint may have more bits than the prefix.
    #[inline(always)]
    fn is_match(location: &GrowingLocation, prefix: &Prefix) -> bool {
        prefix.is_start_of(&location.prefix)
    }

    #[inline]
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        let from = self.origin(bucket);
        let (bits, known) = self.marked.known(fingerprint);
        let core = self.marked.core(fingerprint);
        let string = bits << from.level | from.string(core);
        Prefix { core, base: from.base(), string, length: from.level + known }
    }

    fn moved(&self, bucket: u64, fingerprint: u64) -> Option<(u64, u64)> {
        let prefix = self.prefix(bucket, fingerprint);
        let leveled = self.named_bucket(self.other_base(&prefix), &prefix)?;
        Some((leveled.bucket, self.fingerprint(&prefix, leveled)))
    }

    fn other_base(&self, prefix: &Prefix) -> u64 {
        self.base.reflected(self.segment_of(prefix.base).first, prefix.base, prefix.core)
    }

    fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64> {
        self.named_bucket(base, prefix).map(|leveled| leveled.bucket)
    }

    fn identity(&self, prefix: &Prefix) -> u64 {
        let string = 1 << prefix.length | prefix.string & !(u64::MAX << prefix.length);
        let base = prefix.base.min(self.other_base(prefix));
        (string << CORE_BITS | prefix.core) * self.base.buckets() + base
    }

    fn common_identity(&self, _: &GrowingLocation) -> Option<u64> {
        None
    }

    fn named(&self, identity: u64) -> Option<Prefix> {
        let (base, rest) = (identity % self.base.buckets(), identity / self.base.buckets());
        let (core, marked) = (rest & !(u64::MAX << CORE_BITS), rest >> CORE_BITS);
        let length = u64::BITS.checked_sub(marked.leading_zeros() + 1)?;
        let prefix = Prefix { core, base, string: marked ^ 1 << length, length };
        (core > 0 && self.identity(&prefix) == identity).then_some(prefix)
    }
}
