//! The entries of a table, which of them match a key, and changes of one entry.

use core::iter;

use super::{GrowingLocation, Place, Prefix, Table};
use crate::mem::buffer::Buffer;

/// An entry: its bucket, the content of its slot, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) bucket: u64,
    pub(crate) slot: u64,
    pub(crate) prefix: Prefix,
}

/// Whether something holds for an entry with this slot and this name.
pub(crate) type EntryTest<'a> = dyn Fn(u64, u64) -> bool + 'a;

impl<B: AsRef<[u8]>> Table<B> {
    /// The entries that match the key, or the prefix, of a location: those with no other bit and no
    /// further bit.
    #[inline]
    pub(crate) fn matches<P: Place>(&self, location: &P) -> impl Iterator<Item = Entry> {
        let ((home, other), location) = (location.pair(), *location);
        let fingerprints = location.fingerprints(&self.addresses);
        let mut slots = self.candidates((home, other), fingerprints);
        let entries = iter::from_fn(move || slots.next_of_pair())
            .map(move |(i, slot)| self.entry_of::<P>([home, other][i], slot));
        entries.filter(move |entry| location.is_match(&entry.prefix))
    }

    /// The longest entry that matches.
    #[inline]
    pub(crate) fn longest(&self, location: &impl Place) -> Option<Entry> {
        self.matches(location).max_by_key(|entry| entry.prefix.length)
    }

    /// The name of the longest entry that matches.
    pub(crate) fn name_of_longest(&self, location: &impl Place) -> Option<u64> {
        self.longest(location).map(|entry| self.name(&entry))
    }

    /// The entry in a slot of a bucket.
    #[inline]
    pub(crate) fn entry(&self, bucket: u64, slot: u64) -> Entry {
        self.entry_of::<GrowingLocation>(bucket, slot)
    }

    #[inline]
    fn entry_of<P: Place>(&self, bucket: u64, slot: u64) -> Entry {
        let prefix = P::prefix(&self.addresses, bucket, self.layout.fingerprint_of(slot));
        Entry { bucket, slot, prefix }
    }

    /// The name of an entry.
    #[inline]
    pub(crate) fn name(&self, entry: &Entry) -> u64 {
        self.addresses.name(&entry.prefix)
    }

    /// The entries of a bucket.
    pub(crate) fn entries_of(&self, bucket: u64) -> impl Iterator<Item = Entry> {
        let slots = self.read(bucket).0.into_iter().filter(|&slot| slot != 0);
        slots.map(move |slot| self.entry(bucket, slot))
    }

    /// All entries. O(buckets).
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.addresses.buckets()).flat_map(move |bucket| self.entries_of(bucket))
    }

    /// All entries, but only the first of equal ones in the buckets of a key. O(buckets).
    pub(crate) fn distinct_entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.addresses.buckets()).flat_map(move |bucket| {
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
    fn twin(&self, entry: &Entry) -> Option<(u64, u64)> {
        let location = self.addresses.location(entry.prefix)?;
        let ((_, other), [_, moved]) = (location.pair(), location.fingerprints(&self.addresses));
        let equal = other != entry.bucket
            && self.addresses.stored_length(&location, 1) == entry.prefix.length
            && self.read(other).entries().any(|slot| self.layout.fingerprint_of(slot) == moved);
        equal.then_some((other, moved))
    }

    /// How many entries equal this one in its two buckets, itself included.
    pub(crate) fn equals(&self, entry: &Entry) -> u64 {
        let here = self.read(entry.bucket).copies(entry.slot);
        let there = self.twin(entry).map_or(0, |(other, moved)| {
            self.read(other).copies(self.layout.slot(moved, self.layout.value_of(entry.slot)))
        });
        here + there
    }

    /// The two entries that share most bits, of those that are in one bucket of a location, and how
    /// many bits they share.
    pub(crate) fn most_alike(&self, location: &impl Place) -> Option<(Entry, Entry, u32)> {
        let (home, other) = location.pair();
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
    pub(crate) fn each_relative(&self, prefix: Prefix, visit: &mut impl FnMut(Entry)) {
        let other = self.addresses.other_base(&prefix);
        self.each_relative_at(prefix.base, prefix, visit);
        if other != prefix.base {
            self.each_relative_at(other, prefix, visit);
        }
    }

    fn each_relative_at(&self, base: u64, prefix: Prefix, visit: &mut impl FnMut(Entry)) {
        let Some(bucket) = self.addresses.bucket_of(base, &prefix) else {
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

impl Table<Buffer> {
    /// Writes another slot over that of an entry: with another value, or 0 to take it out.
    pub(crate) fn overwrite(&mut self, entry: &Entry, slot: u64) {
        self.replace(entry.bucket, entry.slot, slot);
        if slot == 0 {
            self.match_weight -= self.addresses.weight(entry.prefix.length);
        }
    }

    /// Whether an entry stores as many bits of this prefix as every bucket can.
    pub(crate) fn is_whole(&self, entry: &Entry, prefix: &Prefix) -> bool {
        entry.prefix.length >= prefix.length.min(self.addresses.common_length())
    }

    /// Whether an entry may lose the bits beyond this length.
    pub(crate) fn may_shorten(&self, entry: &Entry, length: u32) -> bool {
        let shorter = Prefix { length, ..entry.prefix };
        let bucket = self.addresses.bucket_of(shorter.base, &shorter);
        entry.prefix.length > length && bucket.is_some()
    }

    /// Cuts the prefix of an entry to this length, which [it may](Self::may_shorten), and gives it
    /// this value.
    pub(crate) fn shorten(&mut self, entry: &Entry, length: u32, value: u64) {
        let shorter = Prefix { length, ..entry.prefix };
        let Some(location) = self.addresses.location(shorter) else { return };
        let [fingerprint, _] = location.fingerprints(&self.addresses);
        self.replace(entry.bucket, entry.slot, self.layout.slot(fingerprint, value));
        let stored = self.addresses.stored_length(&location, 0);
        self.match_weight -= self.addresses.weight(entry.prefix.length);
        self.match_weight += self.addresses.weight(stored);
    }
}
