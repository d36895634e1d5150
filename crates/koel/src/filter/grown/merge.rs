//! The entries of a filter for another one that has grown further, or less.
//!
//! An entry is the first bits of its key, and stands for every key that continues them. Where the other filter has grown further, an entry may know too little to have one
//! bucket there: then its continuations are added, which together stand for the same keys.

use alloc::{vec, vec::Vec};

use crate::CuckooFilter;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::counters::{Counters, ReadCounters};
use crate::error::{Full, MergeError};
use crate::filter::Merge;
use crate::filter::tally::{COPIES_IN_BUCKETS, Tally};
use crate::growth::{self, Grown};
use crate::store::Store;
use crate::table::{Match, Prefix, Put, Site, Stretch};

impl<S: Store> CuckooFilter<S> {
    /// Hands every different entry to `visit`, as a prefix under `addresses`, with its count.
    pub(in crate::filter) fn each_prefix<E>(
        &self,
        addresses: &Stretch,
        mut visit: impl FnMut(Prefix, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.body {
            Body::Built(table) => table.distinct_entries().try_for_each(|place| {
                let prefix = addresses.unstretched(place.buckets().0, place.fingerprint);
                visit(prefix, self.tally.count_place(table, &place))
            }),
            Body::Grown(grown) => grown
                .table()
                .distinct_entries()
                .try_for_each(|entry| visit(entry.prefix, self.tally.count_entry(grown, &entry))),
        }
    }

    /// How many copies of entries there are that may belong to a key that `prefix` may belong to.
    pub(in crate::filter) fn count_relatives(&self, prefix: Prefix) -> u64 {
        match &self.body {
            Body::Built(table) => {
                let bits = table.geometry().fraction_bits();
                let fraction = prefix.string & !(u64::MAX << bits);
                let fingerprint = prefix.core << bits | fraction;
                let place = table.geometry().place_of(prefix.base, fingerprint);
                self.tally.count_place(table, &place)
            }
            Body::Grown(grown) => {
                let mut count = 0_u64;
                grown.table().each_relative(prefix, &mut |entry| {
                    let identity = grown.addresses().identity(&entry.prefix);
                    let counted = self.tally.counters.get(identity);
                    count = count.saturating_add(1).saturating_add(counted);
                });
                count
            }
        }
    }

    /// An entry with its count, and those that know less of its keys, the shortest first: each with what a key of it counts at least.
    fn matches_of(&self, prefix: Prefix, count: u64) -> Vec<(Prefix, u64)> {
        match &self.body {
            Body::Built(_) => vec![(prefix, count)],
            Body::Grown(grown) => {
                grown.known_less(prefix, &|site| self.tally.count_grown(grown, site))
            }
        }
    }

    /// The layout that the filter has once it has grown, or would have.
    pub(in crate::filter) fn marked_layout(&self) -> Option<crate::Layout> {
        match &self.body {
            Body::Built(table) => growth::marked_layout(table.layout()),
            Body::Grown(grown) => Some(grown.table().layout()),
        }
    }
}

impl CuckooFilter {
    /// The union with `other`, in a filter that grows as need be.
    pub(in crate::filter) fn merged_growing<S: Store>(
        &self,
        other: &CuckooFilter<S>,
        counts: Merge,
    ) -> Result<Self, MergeError> {
        if !self.is_growable() {
            return Err(MergeError::Incompatible { field: "growth" });
        }
        let (ours, theirs) = (self.slots_in_use(), other.slots_in_use());
        let mut room = match counts {
            Merge::Sum => theirs,
            Merge::Max => theirs.saturating_sub(ours),
        };
        loop {
            match self.merged_with_room(other, counts, room) {
                // The halves of void entries, which growth has spread over many buckets, are all in two of a table that is too small.
                Err(MergeError::Full(Full::Slots { .. })) if room < other.slots() => {
                    room = room.saturating_mul(2).max(1);
                }
                merged => return merged,
            }
        }
    }

    /// The union with `other`, in a filter with room for so many entries more before it grows.
    fn merged_with_room<S: Store>(
        &self,
        other: &CuckooFilter<S>,
        counts: Merge,
        room: u64,
    ) -> Result<Self, MergeError> {
        let mut union = self.clone();
        // Entries come in the order of their buckets, and would fill some of the buckets that growth makes and not others.
        union.reserve(room)?;
        let (grown, tally) = union.start_to_grow()?;
        grown.finish_widening();
        let addresses = grown.addresses().clone();
        let mut shared = 0_u128;
        other.each_prefix(&addresses, |prefix, theirs| {
            if counts == Merge::Sum {
                return tally.add_prefix(grown, prefix, theirs);
            }
            let mut added = 0;
            for (prefix, wanted) in other.matches_of(prefix, theirs) {
                added += tally.raise(grown, prefix, wanted)?;
            }
            shared += u128::from(theirs.saturating_sub(added));
            Ok(())
        })?;
        let sum = u128::from(self.len()) + u128::from(other.len());
        let len = u64::try_from(sum.saturating_sub(shared)).map_err(|_| Full::Overflow)?;
        tally.len = len.max(self.len()).max(other.len());
        Ok(union)
    }
}

impl<C: ReadCounters> Tally<C> {
    /// How many copies of an entry there are.
    pub(in crate::filter) fn count_entry<B: AsRef<[u8]>>(
        &self,
        grown: &Grown<B>,
        entry: &Match,
    ) -> u64 {
        let counted = self.counters.get(grown.addresses().identity(&entry.prefix));
        grown.table().equals(entry).saturating_add(counted)
    }
}

impl Tally<Counters> {
    /// Adds what is missing for every key of `prefix` to have a count of `wanted`: how much that was.
    fn raise(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        wanted: u64,
    ) -> Result<u64, Full> {
        let every_key_finds = grown.least_count(prefix, &|site| self.count_grown(grown, site));
        let mut missing = wanted.saturating_sub(every_key_finds);
        if missing > 0 && self.shorten(grown, prefix) {
            missing -= 1;
        }
        self.add_prefix(grown, prefix, missing)?;
        Ok(missing)
    }

    /// Makes an entry that continues `prefix` forget what it knows beyond it: it stands for its keys too from then on. False if there is none.
    fn shorten(&self, grown: &mut Grown<Buffer>, prefix: Prefix) -> bool {
        let mut longer = None;
        grown.each_longer(prefix, &mut |entry| {
            if self.counters.get(grown.addresses().identity(&entry.prefix)) == 0 {
                longer = Some(entry);
            }
        });
        longer.inspect(|entry| grown.shorten(entry, prefix.length)).is_some()
    }

    /// Adds so many copies of an entry of another filter, which may make the table grow.
    pub(in crate::filter) fn add_prefix(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        times: u64,
    ) -> Result<(), Full> {
        let mut left = times;
        while left > 0 {
            let Some(site) = grown.addresses().site(prefix) else {
                return self.add_continuations(grown, prefix, left);
            };
            let equals = grown.table().matches(&site);
            let equals = equals.filter(|it| it.prefix.length == prefix.length).count() as u64;
            // Those that got a slot may be in a counter again, where both buckets are one.
            let given = times - left;
            if equals.max(given) >= COPIES_IN_BUCKETS {
                return self.count_prefix(grown, &site, left);
            }
            // Too short to say which its other bucket is: its continuations can.
            let is_short = grown.addresses().is_short(&site);
            if grown.put(&site, 0, u64::MAX) != Put::Done && !self.make_room_grown(grown, &site) {
                if is_short {
                    return self.add_continuations(grown, prefix, left);
                }
                self.split_for_room(grown)?;
                continue;
            }
            left -= 1;
            self.entries += 1;
            self.spares += u64::from(equals > 0);
            self.keep_load(grown, 0);
        }
        Ok(())
    }

    /// The same for the two halves of the entry.
    fn add_continuations(
        &mut self,
        grown: &mut Grown<Buffer>,
        prefix: Prefix,
        times: u64,
    ) -> Result<(), Full> {
        let mut halves = prefix.continuations().into_iter();
        halves.try_for_each(|half| self.add_prefix(grown, half, times))
    }

    /// Counts copies of an entry that is in the table, where it may have forgotten bits.
    fn count_prefix(&mut self, grown: &Grown<Buffer>, site: &Site, times: u64) -> Result<(), Full> {
        let kept = grown.table().matches(site).max_by_key(|entry| entry.prefix.length);
        let Some(kept) = kept else { return Ok(()) };
        self.count_copies(grown.addresses().identity(&kept.prefix), times)
    }
}

/// How many entries of each length a filter has.
pub(in crate::filter) type Lengths = [u64; 64];

/// Of pairs of entries, one of each filter, the share that may belong to the same key by chance alone.
pub(in crate::filter) fn chance(addresses: &Stretch, [ours, theirs]: [&Lengths; 2]) -> f64 {
    let pairs =
        |&(a, b): &(usize, usize)| ours[a] as f64 * theirs[b] as f64 / (1_u64 << a.min(b)) as f64;
    let all = (0..64).flat_map(|a| (0..64).map(move |b| (a, b)));
    let total = |lengths: &Lengths| lengths.iter().sum::<u64>().max(1) as f64;
    let alike = all.map(|lengths| pairs(&lengths)).sum::<f64>();
    alike / (total(ours) * total(theirs) * addresses.places())
}
