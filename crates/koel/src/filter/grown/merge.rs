//! The entries of a filter for another one that has grown further, or less.
//!
//! An entry is the first bits of its key, and stands for every key that continues them. Where the other filter has grown further, an entry may know too little to have one
//! bucket there: then its continuations are added, which together stand for the same keys.

use alloc::{vec, vec::Vec};

use crate::CuckooFilter;
use crate::counters::ReadCounters;
use crate::error::{Full, MergeError};
use crate::filter::Merge;
use crate::filter::edit::COPIES_IN_BUCKETS;
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
        match &self.body.grown {
            None => self.body.table.distinct_entries().try_for_each(|place| {
                let prefix = addresses.unstretched(place.buckets().0, place.fingerprint);
                visit(prefix, self.count_place(&place))
            }),
            Some(grown) => grown
                .table()
                .distinct_entries()
                .try_for_each(|entry| visit(entry.prefix, self.count_entry(grown, &entry))),
        }
    }

    /// How many copies of an entry there are.
    pub(in crate::filter) fn count_entry(&self, grown: &Grown<S::Buckets>, entry: &Match) -> u64 {
        let counted = self.counters.get(grown.addresses().identity(&entry.prefix));
        grown.table().equals(entry).saturating_add(counted)
    }

    /// How many copies of entries there are that may belong to a key that `prefix` may belong to.
    pub(in crate::filter) fn count_relatives(&self, prefix: Prefix) -> u64 {
        let Some(grown) = &self.body.grown else {
            let geometry = self.body.table.geometry();
            let fraction = prefix.string & !(u64::MAX << geometry.fraction_bits());
            let fingerprint = prefix.core << geometry.fraction_bits() | fraction;
            return self.count_place(&geometry.place_of(prefix.base, fingerprint));
        };
        let mut count = 0_u64;
        grown.table().each_relative(prefix, &mut |entry| {
            let counted = self.counters.get(grown.addresses().identity(&entry.prefix));
            count = count.saturating_add(1).saturating_add(counted);
        });
        count
    }

    /// How many copies there are that every key of `prefix` would find.
    fn count_shorter(&self, prefix: Prefix) -> u64 {
        let grown = self.body.grown.as_ref();
        grown.map_or(0, |it| it.least_count(prefix, &|site| self.count_grown(it, site)))
    }

    /// An entry with its count, and those that know less of its keys, the shortest first: each with what a key of it counts at least.
    fn matches_of(&self, prefix: Prefix, count: u64) -> Vec<(Prefix, u64)> {
        let Some(grown) = &self.body.grown else { return vec![(prefix, count)] };
        grown.known_less(prefix, &|site| self.count_grown(grown, site))
    }

    /// The addresses that both filters can be seen under, if one of them has grown at least.
    pub(in crate::filter) fn common_addresses<T: Store>(
        &self,
        other: &CuckooFilter<T>,
    ) -> Option<Stretch> {
        let theirs = other.body.grown.as_ref().map(Grown::addresses);
        self.body.grown.as_ref().map(Grown::addresses).or(theirs).cloned()
    }

    /// The layout that the filter has once it has grown, or would have.
    pub(in crate::filter) fn marked_layout(&self) -> Option<crate::Layout> {
        match &self.body.grown {
            None => growth::marked_layout(self.layout()),
            Some(_) => Some(self.layout()),
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
        if !self.profile.growable {
            return Err(MergeError::Incompatible { field: "growth" });
        }
        let mut room = match counts {
            Merge::Sum => other.entries,
            Merge::Max => other.entries.saturating_sub(self.entries),
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
        union.start_to_grow()?;
        // Entries come in the order of their buckets, and would fill some of the buckets that growth makes and not others.
        union.reserve(room)?;
        let Some(addresses) = union.body.grown.as_ref().map(|grown| grown.addresses().clone())
        else {
            return Ok(union);
        };
        let mut shared = 0_u128;
        other.each_prefix(&addresses, |prefix, theirs| {
            if counts == Merge::Sum {
                return union.add_prefix(prefix, theirs);
            }
            let mut added = 0;
            for (prefix, wanted) in other.matches_of(prefix, theirs) {
                added += union.raise(prefix, wanted)?;
            }
            shared += u128::from(theirs.saturating_sub(added));
            Ok(())
        })?;
        let sum = u128::from(self.len) + u128::from(other.len);
        let len = u64::try_from(sum.saturating_sub(shared)).map_err(|_| Full::Overflow)?;
        union.len = len.max(self.len).max(other.len);
        Ok(union)
    }

    /// Adds what is missing for every key of `prefix` to have a count of `wanted`: how much that was.
    fn raise(&mut self, prefix: Prefix, wanted: u64) -> Result<u64, Full> {
        let mut missing = wanted.saturating_sub(self.count_shorter(prefix));
        if missing > 0 && self.shorten(prefix) {
            missing -= 1;
        }
        self.add_prefix(prefix, missing)?;
        Ok(missing)
    }

    /// Makes an entry that continues `prefix` forget what it knows beyond it: it stands for its keys too from then on. False if there is none.
    fn shorten(&mut self, prefix: Prefix) -> bool {
        let Some(grown) = &mut self.body.grown else { return false };
        let mut longer = None;
        grown.table().each_relative(prefix, &mut |entry| {
            let named = self.counters.get(grown.addresses().identity(&entry.prefix)) > 0;
            let tells = grown.addresses().level_of(entry.bucket) <= prefix.length;
            if entry.prefix.length > prefix.length && tells && !named {
                longer = Some(entry);
            }
        });
        longer.inspect(|entry| grown.shorten(entry, prefix.length)).is_some()
    }

    /// Adds so many copies of an entry of another filter, which may grow by that.
    pub(in crate::filter) fn add_prefix(&mut self, prefix: Prefix, times: u64) -> Result<(), Full> {
        if times == 0 {
            return Ok(());
        }
        let mut left = times;
        loop {
            let Some(grown) = &mut self.body.grown else { return Ok(()) };
            let Some(site) = grown.addresses().site(prefix) else {
                return prefix
                    .continuations()
                    .into_iter()
                    .try_for_each(|it| self.add_prefix(it, left));
            };
            // Too short to say which its other bucket is: its continuations can.
            let is_short = grown.addresses().is_short(&site);
            let equals = grown.table().matches(&site);
            let equals = equals.filter(|it| it.prefix.length == prefix.length).count() as u64;
            // Those that got a slot may be in a counter again, where both buckets are one.
            let given = times - left;
            if left == 0 || equals.max(given) >= COPIES_IN_BUCKETS {
                return self.count_prefix(&site, left);
            }
            if grown.put(&site, 0, u64::MAX) != Put::Done && !self.make_room_grown(&site) {
                if is_short {
                    let mut longer = prefix.continuations().into_iter();
                    return longer.try_for_each(|it| self.add_prefix(it, left));
                }
                self.split_for_room()?;
                continue;
            }
            left -= 1;
            self.entries += 1;
            self.distinct += u64::from(equals == 0);
            self.keep_load(0);
        }
    }

    /// Counts copies of an entry that is in the table, where it may have forgotten bits.
    fn count_prefix(&mut self, site: &Site, times: u64) -> Result<(), Full> {
        let Some(grown) = self.body.grown.as_ref().filter(|_| times > 0) else { return Ok(()) };
        let kept = grown.table().matches(site).max_by_key(|entry| entry.prefix.length);
        let Some(kept) = kept else { return Ok(()) };
        let identity = grown.addresses().identity(&kept.prefix);
        self.counters.add(identity, times, self.profile.counter_limit).map(|_| ())
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
