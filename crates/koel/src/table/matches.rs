//! The entries of a table, and which of them match a key.

use core::iter;

use super::{Addressing, Match, Prefix, Table};

impl<B: AsRef<[u8]>, A: Addressing> Table<B, A> {
    /// The entries that match the key, or the prefix, of a location: those with no other bit and no
    /// further bit.
    #[inline]
    pub(crate) fn matches(&self, location: &A::Location) -> impl Iterator<Item = Match> {
        let ((home, other), location) = (A::pair(location), *location);
        let mut slots = self.candidates((home, other), self.geometry.fingerprints(&location));
        let entries = iter::from_fn(move || slots.next_of_pair())
            .map(move |(i, slot)| self.entry([home, other][i], slot));
        entries.filter(move |entry| A::is_match(&location, &entry.prefix))
    }

    /// The longest entry that matches.
    #[inline]
    pub(crate) fn longest(&self, location: &A::Location) -> Option<Match> {
        self.matches(location).max_by_key(|entry| entry.prefix.length)
    }

    /// The name of the longest entry that matches.
    pub(crate) fn name_of_longest(&self, location: &A::Location) -> Option<u64> {
        self.longest(location).map(|entry| self.name(&entry))
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

    /// All entries, but only the first of equal ones in the buckets of a key. O(buckets).
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
        let location = self.geometry.location(entry.prefix)?;
        let ((_, other), [_, moved]) = (A::pair(&location), self.geometry.fingerprints(&location));
        let equal = other != entry.bucket
            && self.geometry.stored_length(&location, 1) == entry.prefix.length
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

    /// The two entries that share most bits, of those that are in one bucket of a location, and how
    /// many bits they share.
    pub(crate) fn most_alike(&self, location: &A::Location) -> Option<(Match, Match, u32)> {
        let (home, other) = A::pair(location);
        let alike_in = |bucket| {
            let earlier = move |n| self.entries_of(bucket).take(n);
            let pairs = self.entries_of(bucket).enumerate();
            let pairs = pairs.flat_map(move |(n, one)| earlier(n).map(move |two| (one, two)));
            pairs.filter_map(|(one, two)| Some((one, two, one.prefix.in_common(&two.prefix)?)))
        };
        [home, other].into_iter().flat_map(alike_in).max_by_key(|&(_, _, length)| length)
    }

    /// Calls `visit` with every entry that may belong to a key of `prefix`: one of the two prefixes
    /// continues the other. Reads every bucket that may hold a continuation of the prefix.
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
}
