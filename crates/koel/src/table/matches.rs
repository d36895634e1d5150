//! The entries of a table, and which of them match a key.
//!
//! An entry stands for the first bits of its keys: its prefix. In a table of one size all prefixes
//! are equally long, so entries that match one key are equal.

use core::iter;

use super::{Addressing, Table};
use crate::address::geometry::Geometry;

/// The first bits of a string, with what else names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) core: u64,
    /// A base bucket: one of two.
    pub(crate) base: u64,
    /// The bits, the first one lowest; those from `length` on say nothing.
    pub(crate) string: u64,
    /// How many bits of the string count. A key has all of them.
    pub(crate) length: u32,
}

impl Prefix {
    /// Whether every key of `other`, a prefix with the same base buckets, is one of this prefix
    /// too.
    #[inline]
    pub(crate) fn is_start_of(&self, other: &Self) -> bool {
        self.in_common(other) == Some(self.length)
    }

    /// How many bits two prefixes with the same base buckets begin alike with; `None` if they are
    /// not of one core.
    #[inline]
    pub(crate) fn in_common(&self, other: &Self) -> Option<u32> {
        let alike = (self.string ^ other.string).trailing_zeros();
        (self.core == other.core).then(|| alike.min(self.length).min(other.length))
    }

    /// The two prefixes that know one bit more.
    pub(crate) fn continuations(self) -> [Self; 2] {
        [0, 1].map(|bit| {
            let string = self.string & !(1 << self.length) | bit << self.length;
            Self { string, length: self.length + 1, ..self }
        })
    }
}

/// An entry: where it is, what its slot holds, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) bucket: u64,
    pub(crate) slot: u64,
    pub(crate) prefix: Prefix,
}

/// What a fingerprint stands for in its bucket, and where else it may lie.
pub(crate) trait Prefixes: Addressing {
    /// The two buckets of a key, and what its entries are compared with.
    type Location: Copy;

    /// Whether the table grows, so that the entries that match a key may differ in length.
    const GROWS: bool;

    /// The addresses that the table was built with.
    fn base(&self) -> &Geometry;

    /// Where the key with this hash may live.
    fn locate(&self, hash: u64) -> Self::Location;

    /// Where an entry with this prefix may live; `None` where the prefix is too short to say.
    fn location(&self, prefix: Prefix) -> Option<Self::Location>;

    /// Both buckets.
    fn pair(at: &Self::Location) -> (u64, u64);

    /// The fingerprint in each of the two buckets.
    fn fingerprints(&self, at: &Self::Location) -> [u64; 2];

    /// Whether an entry with a fingerprint that matches has no bit more than the location.
    fn is_match(at: &Self::Location, prefix: &Prefix) -> bool;

    /// What a fingerprint stands for in a bucket.
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix;

    /// The other bucket of a fingerprint, and its fingerprint there; `None` where it is too short
    /// to say.
    fn moved(&self, bucket: u64, fingerprint: u64) -> Option<(u64, u64)>;

    /// The other one of the two buckets that a key of this prefix had in the table as it was built.
    fn other_base(&self, prefix: &Prefix) -> u64;

    /// What the bucket `base` of the table as it was built has become for this prefix, if that is
    /// long enough to say.
    fn bucket_of(&self, base: u64, prefix: &Prefix) -> Option<u64>;

    /// The name of an entry, which no growth changes.
    fn identity(&self, prefix: &Prefix) -> u64;

    /// The name of all entries that match, where they have the same one.
    fn common_identity(&self, at: &Self::Location) -> Option<u64>;

    /// The prefix of a name; `None` where there is none of that name.
    fn named(&self, identity: u64) -> Option<Prefix>;
}

impl<B: AsRef<[u8]>, A: Prefixes> Table<B, A> {
    /// The entries that match the key, or the prefix, of a location: those that store nothing else
    /// and nothing more.
    #[inline]
    pub(crate) fn matches(&self, at: &A::Location) -> impl Iterator<Item = Match> {
        let ((home, other), at) = (A::pair(at), *at);
        let mut slots = self.candidates((home, other), self.geometry.fingerprints(&at));
        let entries = iter::from_fn(move || slots.next_of_pair())
            .map(move |(i, slot)| self.entry([home, other][i], slot));
        entries.filter(move |entry| A::is_match(&at, &entry.prefix))
    }

    /// The longest entry that matches.
    #[inline]
    pub(crate) fn longest(&self, at: &A::Location) -> Option<Match> {
        self.matches(at).max_by_key(|entry| entry.prefix.length)
    }

    /// The name of the longest entry that matches. The caller knows that there is one.
    pub(crate) fn name_of_longest(&self, at: &A::Location) -> Option<u64> {
        let common = self.geometry.common_identity(at);
        common.or_else(|| self.longest(at).map(|entry| self.name(&entry)))
    }

    /// The entry in a slot of a bucket.
    #[inline]
    pub(crate) fn entry(&self, bucket: u64, slot: u64) -> Match {
        let prefix = self.geometry.prefix(bucket, self.layout.fingerprint_of(slot));
        Match { bucket, slot, prefix }
    }

    /// The name of an entry.
    #[inline]
    pub(crate) fn name(&self, entry: &Match) -> u64 {
        self.geometry.identity(&entry.prefix)
    }

    /// The entries of a bucket.
    pub(crate) fn entries_of(&self, bucket: u64) -> impl Iterator<Item = Match> {
        let slots = self.read(bucket).0.into_iter().filter(|&slot| slot != 0);
        slots.map(move |slot| self.entry(bucket, slot))
    }

    /// All entries. O(buckets).
    pub(crate) fn entries(&self) -> impl Iterator<Item = Match> {
        (0..self.geometry.buckets()).flat_map(move |bucket| self.entries_of(bucket))
    }

    /// Every entry, but of equal ones in the buckets of a key only the first. O(buckets).
    pub(crate) fn distinct_entries(&self) -> impl Iterator<Item = Match> {
        (0..self.geometry.buckets()).flat_map(move |bucket| {
            let slots = self.read(bucket).0;
            self.entries_of(bucket).enumerate().filter_map(move |(i, entry)| {
                let mut earlier = slots.into_iter().filter(|&slot| slot != 0).take(i);
                let repeated = earlier.any(|slot| slot == entry.slot)
                    || self.twin(&entry).is_some_and(|(other, _)| other < bucket);
                (!repeated).then_some(entry)
            })
        })
    }

    /// The other bucket of an entry, if an equal one is there, and the fingerprint of that one.
    fn twin(&self, entry: &Match) -> Option<(u64, u64)> {
        let fingerprint = self.layout.fingerprint_of(entry.slot);
        let (other, moved) = self.geometry.moved(entry.bucket, fingerprint)?;
        let equal = self.geometry.prefix(other, moved).length == entry.prefix.length
            && other != entry.bucket
            && self.read(other).entries().any(|slot| self.layout.fingerprint_of(slot) == moved);
        equal.then_some((other, moved))
    }

    /// How many entries equal this one in its two buckets, itself included.
    pub(crate) fn equals(&self, entry: &Match) -> u64 {
        let here = self.read(entry.bucket).copies(entry.slot);
        let there = self.twin(entry).map_or(0, |(other, moved)| {
            self.read(other).copies(self.layout.slot(moved, self.layout.value_of(entry.slot)))
        });
        here + there
    }

    /// Calls `visit` with every entry that may belong to a key of `prefix`: one of the two prefixes
    /// continues the other. Looks at every bucket that a continuation of the prefix may be in.
    pub(crate) fn each_relative(&self, prefix: Prefix, visit: &mut impl FnMut(Match)) {
        let other = self.geometry.other_base(&prefix);
        self.each_relative_at(prefix.base, prefix, visit);
        if other != prefix.base {
            self.each_relative_at(other, prefix, visit);
        }
    }

    fn each_relative_at(&self, base: u64, prefix: Prefix, visit: &mut impl FnMut(Match)) {
        let Some(bucket) = self.geometry.bucket_of(base, &prefix) else {
            let longer = prefix.continuations();
            return longer.into_iter().for_each(|it| self.each_relative_at(base, it, visit));
        };
        for entry in self.entries_of(bucket) {
            if entry.prefix.is_start_of(&prefix) || prefix.is_start_of(&entry.prefix) {
                visit(entry);
            }
        }
    }

    /// Prefetches the buckets of the key with this hash.
    #[inline]
    pub(crate) fn prefetch_key(&self, hash: u64) {
        let (home, other) = A::pair(&self.geometry.locate(hash));
        for bucket in [home, other] {
            self.prefetch(bucket);
        }
    }
}
