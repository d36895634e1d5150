//! What the entries of a growing table stand for: from a bucket and a fingerprint to the prefix of
//! a key, its name and its other bucket, and back.

use core::hint::select_unpredictable;

use super::{LeveledBucket, LinearHashing, quotient, scatter};
use crate::table::Prefix;

/// Where a bucket comes from, which tells what its entries stand for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The bucket itself.
    bucket: u64,
    /// The base bucket that it was split off.
    pub(super) base: u64,
    /// The segment of the base bucket, its number there, and its interleaved index.
    pub(super) segment: u64,
    local: u64,
    index: u64,
    pub(super) split_index: u64,
    pub(super) level: u32,
}

impl Origin {
    /// The bits of a string that the bucket stands for.
    #[inline(always)]
    pub(super) fn string(&self, core: u64) -> u64 {
        (self.split_index ^ scatter(self.index, core)) & !(u64::MAX << self.level)
    }
}

impl LinearHashing {
    /// Where a bucket comes from.
    #[inline]
    pub(crate) fn origin(&self, bucket: u64) -> Origin {
        let split_index = quotient(bucket, self.reciprocal);
        let rest = bucket - split_index * self.base.buckets();
        if self.base.is_one_segment() {
            let (base, local, index, level) = (rest, rest, rest, self.level_of_number(bucket));
            return Origin { bucket, base, segment: 0, local, index, split_index, level };
        }
        // Both are worked out, so that neither waits for the split index.
        let built = self.segment_of(bucket);
        let (segment, local) = self.base.deinterleave(rest);
        let is_base = split_index == 0;
        let segment = select_unpredictable(is_base, built, segment);
        let local = select_unpredictable(is_base, bucket - self.segment_start(built), local);
        self.origin_at(segment, local, split_index)
    }

    /// Where the bucket comes from that a base bucket of a segment has become for a split index.
    #[inline(always)]
    pub(crate) fn origin_at(&self, segment: u64, local: u64, split_index: u64) -> Origin {
        let (base, index) =
            (self.segment_start(segment) + local, self.base.interleave(segment, local));
        let number = split_index * self.base.buckets() + index;
        let bucket = if split_index == 0 { base } else { number };
        Origin {
            bucket,
            base,
            segment,
            local,
            index,
            split_index,
            level: self.level_of_number(number),
        }
    }

    /// The other bucket of a fingerprint; that of `from` itself if the fingerprint does not tell
    /// it. Levels differ by at most one, so only the first stored bit matters.
    #[inline(always)]
    pub(crate) fn other_bucket(&self, from: &Origin, fingerprint: u64) -> u64 {
        let core = self.marked.core(fingerprint);
        let first = self.marked.first(fingerprint).wrapping_neg() & 1 << from.level;
        let string = first | from.string(core);
        let other = self.base.reflected(0, from.local, core);
        let leveled = self.leveled(from.segment, other, core, string);
        let tells = leveled.level <= from.level || !self.marked.is_void(fingerprint);
        if tells { leveled.bucket } else { from.bucket }
    }

    /// A bucket with its level.
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
        let segment = self.segment_of(bucket);
        let index = self.base.interleave(segment, bucket - self.segment_start(segment));
        let is_base = bucket < self.base.buckets();
        self.level_of_number(select_unpredictable(is_base, index, bucket))
    }

    #[inline]
    fn level_of_number(&self, number: u64) -> u32 {
        let is_split = (number < self.split) | (number >= self.level_buckets());
        self.level + u32::from(is_split)
    }

    /// The bucket whose turn to be split is this one of the level.
    pub(crate) fn bucket_to_split(&self, number: u64) -> u64 {
        if number < self.base.buckets() { self.base.bucket_at(number) } else { number }
    }

    /// The fingerprint that stands for a prefix in a bucket. It loses the bits for which there is
    /// no room.
    #[inline]
    pub(crate) fn fingerprint(&self, prefix: &Prefix, leveled: LeveledBucket) -> u64 {
        if !self.grows() {
            return self.unmarked(prefix);
        }
        let stored = (prefix.length - leveled.level).min(self.most_in(leveled.bucket));
        self.marked.fingerprint(prefix.core, prefix.string >> leveled.level, stored)
    }

    /// The half of a bucket to which an entry goes when the bucket is split, and its fingerprint
    /// there. `None` for a void entry, which goes to both.
    pub(crate) fn half(&self, from: &Origin, fingerprint: u64) -> Option<(bool, u64)> {
        let (bits, stored) = self.marked.known(fingerprint);
        let core = self.marked.core(fingerprint);
        let scattered = scatter(from.index, core) >> from.level & 1;
        let rest = || self.marked.fingerprint(core, bits >> 1, stored - 1);
        (stored > 0).then(|| ((bits ^ scattered) & 1 == 1, rest()))
    }
}
