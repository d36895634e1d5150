//! What the entries of a table that grows stand for: from a bucket and a fingerprint to the prefix
//! of a key, its name and its other bucket, and back.

use core::hint::select_unpredictable;

use super::{LeveledBucket, LinearHashing, Segment, quotient, scatter};
use crate::table::Prefix;

/// Where a bucket comes from: what it says of the entries in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The bucket itself.
    bucket: u64,
    /// The segment and the number in it of the base bucket that it was split off, and the number in
    /// turn of that one.
    pub(super) segment: Segment,
    pub(super) local: u64,
    pub(super) turn: u64,
    pub(super) world: u64,
    pub(super) level: u32,
}

impl Origin {
    /// The base bucket that it was split off.
    #[inline]
    pub(super) fn base(&self) -> u64 {
        self.segment.first + self.local
    }

    /// The bits of a string that the bucket stands for.
    #[inline]
    pub(super) fn string(&self, core: u64) -> u64 {
        (self.world ^ scatter(self.turn, core)) & !(u64::MAX << self.level)
    }
}

impl LinearHashing {
    /// Where a bucket comes from.
    #[inline]
    pub(crate) fn origin(&self, bucket: u64) -> Origin {
        let world = quotient(bucket, self.reciprocal);
        let rest = bucket - world * self.base.buckets();
        if self.base.is_one_segment() {
            let level = self.level_of_number(bucket);
            return Origin {
                bucket,
                segment: Segment::ONLY,
                local: rest,
                turn: rest,
                world,
                level,
            };
        }
        // Both are worked out, so that neither waits for the world.
        let built = self.segment_of(bucket);
        let (number, local) = self.base.deinterleave(rest);
        let is_first = world == 0;
        let segment = self.segment(select_unpredictable(is_first, built.number, number));
        let local = select_unpredictable(is_first, bucket - built.first, local);
        let turn = self.base.interleave(segment.number, local);
        let level = self.level_of_number(turn + (bucket - rest));
        Origin { bucket, segment, local, turn, world, level }
    }

    /// The other bucket of a fingerprint; that of `from` itself where the fingerprint does not say
    /// which it is. Of what the fingerprint knows only the first bit can matter: buckets stand for
    /// at most one bit more than others.
    #[inline(always)]
    pub(crate) fn other_bucket(&self, from: &Origin, fingerprint: u64) -> u64 {
        let core = self.marked.core(fingerprint);
        let first = self.marked.first(fingerprint).wrapping_neg() & 1 << from.level;
        let string = first | from.string(core);
        let other = self.base.reflected(0, from.local, core);
        let leveled = self.leveled(from.segment, other, core, string);
        let says = leveled.level <= from.level || !self.marked.is_void(fingerprint);
        if says { leveled.bucket } else { from.bucket }
    }

    /// A bucket, as a place of entries.
    #[inline]
    pub(crate) fn leveled_bucket(&self, bucket: u64) -> LeveledBucket {
        LeveledBucket { bucket, level: self.level_of(bucket) }
    }

    /// How many bits of a string a bucket stands for.
    #[inline]
    pub(crate) fn level_of(&self, bucket: u64) -> u32 {
        if self.base.is_one_segment() {
            return self.level_of_number(bucket);
        }
        let is_first = bucket < self.base.buckets();
        let segment = self.segment_of(bucket);
        let turn = self.base.interleave(segment.number, bucket - segment.first);
        self.level_of_number(select_unpredictable(is_first, turn, bucket))
    }

    #[inline]
    fn level_of_number(&self, number: u64) -> u32 {
        let is_split = (number < self.split) | (number >= self.level_buckets());
        self.level + u32::from(is_split)
    }

    /// The bucket that is split next.
    pub(crate) fn next_to_split(&self) -> u64 {
        if self.split < self.base.buckets() { self.base.bucket_at(self.split) } else { self.split }
    }

    /// The fingerprint that stands for a prefix in a bucket; it forgets what there is no room for.
    #[inline]
    pub(crate) fn fingerprint(&self, prefix: &Prefix, leveled: LeveledBucket) -> u64 {
        let known = (prefix.length - leveled.level).min(self.most_in(leveled.bucket));
        self.marked.fingerprint(prefix.core, prefix.string >> leveled.level, known)
    }

    /// Which half of a bucket an entry goes to when the bucket is split, and its fingerprint there;
    /// `None` for a void one, which goes to both.
    pub(crate) fn half(&self, from: &Origin, fingerprint: u64) -> Option<(bool, u64)> {
        let (bits, known) = self.marked.known(fingerprint);
        let core = self.marked.core(fingerprint);
        let turned = scatter(from.turn, core) >> from.level & 1;
        let rest = || self.marked.fingerprint(core, bits >> 1, known - 1);
        (known > 0).then(|| ((bits ^ turned) & 1 == 1, rest()))
    }
}
