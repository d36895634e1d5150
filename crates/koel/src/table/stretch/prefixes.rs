//! The prefixes of a growing table: entries differ in length, and a key has a fingerprint for each
//! of its buckets.

use super::{Prefix, Segment, Site, Stretch};
use crate::geometry::{CORE_BITS, Geometry};
use crate::table::Prefixes;

impl Prefixes for Stretch {
    type Location = Site;
    const GROWS: bool = true;

    fn base(&self) -> &Geometry {
        &self.base
    }

    #[inline(always)]
    fn locate(&self, hash: u64) -> Site {
        // As in `Geometry::locate`: tables that grow mostly began as one segment.
        if self.base.is_one_segment() {
            self.located(Segment::ONLY, hash)
        } else {
            self.located(self.segment_of_hash(hash), hash)
        }
    }

    fn location(&self, prefix: Prefix) -> Option<Site> {
        let bases = [prefix.base, self.other_base(&prefix)];
        let spots = bases.map(|base| self.named_spot(base, &prefix));
        let spots = [spots[0].or(spots[1])?, spots[1].or(spots[0])?];
        Some(Site { prefix, spots })
    }

    #[inline(always)]
    fn pair(site: &Site) -> (u64, u64) {
        site.buckets()
    }

    #[inline(always)]
    fn fingerprints(&self, site: &Site) -> [u64; 2] {
        site.spots.map(|spot| self.fingerprint(&site.prefix, spot))
    }

    /// What matches a fingerprint may have more bits than the prefix.
    #[inline(always)]
    fn is_match(site: &Site, prefix: &Prefix) -> bool {
        prefix.is_start_of(&site.prefix)
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
        let spot = self.named_spot(self.other_base(&prefix), &prefix)?;
        Some((spot.bucket, self.fingerprint(&prefix, spot)))
    }

    fn other_base(&self, prefix: &Prefix) -> u64 {
        self.base.reflected(self.segment_of(prefix.base).first, prefix.base, prefix.core)
    }

    fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64> {
        self.named_spot(base, prefix).map(|spot| spot.bucket)
    }

    fn identity(&self, prefix: &Prefix) -> u64 {
        let string = 1 << prefix.length | prefix.string & !(u64::MAX << prefix.length);
        let base = prefix.base.min(self.other_base(prefix));
        (string << CORE_BITS | prefix.core) * self.base.buckets() + base
    }

    fn common_identity(&self, _: &Site) -> Option<u64> {
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
