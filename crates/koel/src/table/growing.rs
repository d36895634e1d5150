//! A table that grows as entries come, without their keys: linear hashing under cuckoo hashing.
//!
//! * **Entries** are marked fingerprints (packing/marked.rs) under the addresses of
//!   [`LinearHashing`]. The two buckets of a key may stand for different numbers of bits, so a key
//!   has a fingerprint for each.
//! * **Load.** The next chunk of buckets is split when the entries exceed the design load
//!   (load.rs). A search for room that fails splits the next chunk too.
//! * **Pauses.** A chunk is a 64th of the level, at most 4096 buckets: less than a millisecond. A
//!   table that was built without marks is widened first, once: each insert widens a 16th of it, at
//!   most [`MAX_WIDENED`] buckets, in place (widening.rs).
//! * **False-positive rate.** An entry of n bits beyond its bucket matches one key in 2^n. The
//!   rate is known exactly at every moment: it follows from the match weight, the sum of 2^-length
//!   over all entries.
//!
//! What happens to counters and totals is in `state/`.

use core::{iter, mem};

use super::load::{MAX_WIDENED, addresses_for, buckets_after_steps, design_limit, step_of};
use super::{
    Addressing, Cuckoo, CuckooMut, GrowingLocation, LinearHashing, Match, Put, Step, Table, Taken,
    table_bytes,
};
use crate::address::geometry::Geometry;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::packing::{Bucket, Layout, Packing, Prefixed, SLOTS, byte_index, with_packing};

/// A table is not split if an absent key matches more entries than this on average. That happens
/// only where most entries have no bits of their own, in a forged file or in a union of many
/// filters. Such entries go to both halves of a bucket, so splitting makes no room. A table that
/// grew from the narrowest fingerprints to 2^27 times its size has 0.09.
const MOST_MATCHES: f64 = 0.1;

/// A table that grows.
pub(crate) type Growing<B> = Table<B, LinearHashing>;

impl<B: AsRef<[u8]>> Growing<B> {
    /// The table in `bytes`, with the match weight of its entries.
    pub(crate) fn grown(
        addresses: LinearHashing,
        layout: Layout,
        bytes: B,
        match_weight: u128,
    ) -> Self {
        let mut table = Self { match_weight, ..Self::new(addresses, layout, bytes) };
        table.set_limit();
        table
    }

    /// Whether some buckets are still to be widened.
    #[inline]
    pub(crate) fn is_midway(&self) -> bool {
        self.geometry.widening().is_some()
    }

    /// The sum of 2^-length of all entries, in units of 2^-64.
    pub(crate) fn match_weight(&self) -> u128 {
        self.match_weight
    }

    /// The match weight, computed from the buckets. O(buckets).
    pub(crate) fn computed_weight(&self) -> u128 {
        self.entries().map(|entry| LinearHashing::weight_of(entry.prefix.length)).sum()
    }

    /// Entries that match an absent key on average. Each matches if the key has its core, one of
    /// its two base buckets and its bits.
    pub(crate) fn matches_of_an_absent_key(&self) -> f64 {
        let entries = self.match_weight as f64 / LinearHashing::weight_of(0) as f64;
        entries / self.geometry.locations()
    }

    /// Whether buckets may still be split: they have numbers, and splitting makes room.
    fn may_split(&self) -> bool {
        self.geometry.can_grow() && self.matches_of_an_absent_key() < MOST_MATCHES
    }

    /// Whether it has room for more entries than so many, now or once it has grown.
    pub(crate) fn may_gain_entries(&self, entries: u64) -> bool {
        !self.is_overfull(entries) || self.may_split()
    }

    /// The buckets of the key with this address and what entries there are compared with. `None` if
    /// no entry matches.
    ///
    /// O(1): two loads, no branch on the data. Not inlined, so that lookups in tables of one size
    /// save no register for it.
    #[inline(never)]
    pub(crate) fn find_pair(&self, address: u64) -> Option<((u64, u64), [u64; 2])> {
        let location = self.geometry.located(address);
        let is_there = self.contains_location(&location);
        is_there.then(|| (location.buckets(), self.geometry.keys(&location)))
    }

    /// Whether an entry matches the key of a location.
    ///
    /// Prefetches both buckets before it waits for one. A processor runs a few hundred instructions
    /// ahead of a read that waits. That is as many as lie between the reads of two lookups, so the
    /// next lookup prefetches while this one waits.
    #[inline(always)]
    fn contains_location(&self, location: &GrowingLocation) -> bool {
        for leveled in location.leveled_buckets {
            prefetch(self.bytes(), byte_index(leveled.bucket * self.bucket_bits / 8));
        }
        let keys = self.geometry.keys(location);
        with_packing!(&self.packing, packing => {
            let starts = self.starts(location.buckets());
            packing.matches::<Prefixed>(self.bytes(), starts, keys)
        })
    }

    /// The smallest table into which `move_to` moves all entries, and the result of `move_to`.
    /// `None` if that table is no smaller than this one.
    ///
    /// Tries a table for `entries` first, then larger ones: growth has spread the halves of a void
    /// entry over many buckets, and in a small table all of them fall into two.
    pub(crate) fn in_fewer_buckets<T>(
        &self,
        entries: u64,
        move_to: impl Fn(&mut Growing<Buffer>) -> Option<T>,
    ) -> Option<(Growing<Buffer>, T)> {
        let buckets = self.geometry.buckets();
        let smaller = |room| {
            let addresses = addresses_for(self.geometry.base(), self.layout, room)?;
            (addresses.buckets() < buckets).then(|| Growing::of(addresses, self.layout))?
        };
        let rooms = iter::successors(Some(entries), |room| room.checked_mul(2));
        rooms.map_while(smaller).find_map(|mut smaller| {
            let moved = move_to(&mut smaller)?;
            (smaller.geometry.buckets() < buckets).then_some((smaller, moved))
        })
    }

    /// How many of so many entries have no bits beyond those of their bucket, at least. A split
    /// puts them in both halves, so they take the same share of the slots in a table of any size.
    ///
    /// If all were void, there would be `v`, the match weight in units of one bucket. Each other
    /// entry counts for half of one or less in `v`.
    fn void_entries(&self, entries: u64) -> f64 {
        let weight = self.match_weight as f64 / LinearHashing::weight_of(0) as f64;
        let times = self.geometry.buckets() as f64 / self.geometry.base().buckets() as f64;
        (2.0 * weight * times - entries as f64).clamp(0.0, entries as f64)
    }

    /// Sets the limit: the design limit, or 0 while buckets are widened. It follows from the table
    /// alone, so a copy from a file grows like the original.
    pub(super) fn set_limit(&mut self) {
        let designed = design_limit(self.layout, self.geometry.buckets());
        self.limit = if self.is_midway() { 0 } else { designed };
    }

    /// The longest entry that matches and has this value, and how many do.
    #[inline]
    fn longest_with(&self, location: &GrowingLocation, value: u64) -> Option<(Match, u64)> {
        let mut matches = 0;
        let has_value = |entry: &Match| self.layout.value_of(entry.slot) == value;
        let with_value = self.matches(location).filter(has_value);
        let longest = with_value.inspect(|_| matches += 1).max_by_key(|entry| entry.prefix.length);
        longest.map(|entry| (entry, matches))
    }
}

impl<B: AsRef<[u8]>> Cuckoo for Growing<B> {
    type Bytes = B;
    type Addresses = LinearHashing;

    #[inline]
    fn table(&self) -> &Self {
        self
    }

    /// Not inlined, so that lookups in tables of one size save no register for it.
    #[inline(never)]
    fn contains(&self, address: u64) -> bool {
        self.contains_location(&self.geometry.located(address))
    }

    #[inline(never)]
    fn look_up(&self, address: u64) -> (GrowingLocation, bool) {
        let location = self.geometry.located(address);
        (location, self.contains_location(&location))
    }
}

impl Growing<Buffer> {
    /// An empty table with the addresses of `base`. `None` if its bytes cannot be addressed or
    /// allocated.
    pub(crate) fn empty(base: Geometry, layout: Layout) -> Option<Self> {
        let addresses = LinearHashing::new(base, layout.marks()?, 0, 0);
        if addresses.is_sound() { Self::of(addresses, layout) } else { None }
    }

    /// An empty table with these addresses. `None` if its bytes cannot be addressed or allocated.
    fn of(addresses: LinearHashing, layout: Layout) -> Option<Self> {
        let bytes = table_bytes(layout, addresses.buckets())?;
        Some(Self::grown(addresses, layout, Buffer::zeroed(bytes, true)?, 0))
    }

    /// The growing table that `built` becomes, which has so many entries and no values.
    /// [`split`](CuckooMut::split) widens its buckets, a few at a time. `None`, and nothing
    /// changed, if there is no memory for that. O(1).
    pub(crate) fn begun(built: &mut Table<Buffer>, layout: Layout, entries: u64) -> Option<Self> {
        let weight = LinearHashing::weight_of(built.geometry().fraction_bits());
        let stand_in = Table::stand_in(built.layout())?;
        match Table::to_be_widened(mem::replace(built, stand_in), layout) {
            Ok(table) => {
                Some(Self { match_weight: u128::from(entries) * weight, limit: 0, ..table })
            }
            Err(unchanged) => {
                *built = unchanged;
                None
            }
        }
    }

    /// How many buckets the next step splits.
    fn chunk(&self) -> u64 {
        let level = self.geometry.level_buckets();
        step_of(level).min(level - self.geometry.split())
    }

    /// Splits the next bucket of the level. Calls `doubled` as [`split`](CuckooMut::split) does.
    fn split_next(&mut self, doubled: &mut impl FnMut(u64, u64, [u64; 2])) {
        let lower = self.geometry.bucket_to_split(self.geometry.split());
        let upper = self.geometry.buckets();
        let needed = table_bytes(self.layout, upper + 1);
        assert!(needed.is_some_and(|bytes| bytes <= self.bytes().len()), "no room for a bucket");
        let from = self.geometry.origin(lower);
        let mut halves = [[0; SLOTS]; 2];
        for (i, slot) in self.read(lower).0.into_iter().enumerate().filter(|&(_, slot)| slot != 0) {
            let (fingerprint, value) =
                (self.layout.fingerprint_of(slot), self.layout.value_of(slot));
            match self.geometry.half(&from, fingerprint) {
                Some((upper, rest)) => {
                    halves[usize::from(upper)][i] = self.layout.slot(rest, value);
                }
                None => {
                    halves.iter_mut().for_each(|half| half[i] = slot);
                    let void = self.geometry.prefix(lower, fingerprint);
                    let names = void.continuations().map(|half| self.geometry.identity(&half));
                    doubled(value, self.geometry.identity(&void), names);
                }
            }
        }
        self.write_bucket(lower, Bucket(halves[0]));
        self.write_bucket(upper, Bucket(halves[1]));
        self.geometry.advance();
        self.end += self.bucket_bits;
    }
}

impl CuckooMut for Growing<Buffer> {
    #[inline]
    fn table_mut(&mut self) -> &mut Self {
        self
    }

    fn put(&mut self, location: &GrowingLocation, value: u64, most: u64) -> Put {
        let keys = self.geometry.fingerprints(location);
        let slots = keys.map(|key| self.layout.slot(key, value));
        let chosen = with_packing!(&self.packing, packing => {
            let starts = self.starts(location.buckets());
            put(packing, self.bytes.as_mut(), starts, (keys, slots), most)
        });
        match chosen {
            Ok(which) => {
                let length = self.geometry.stored_length(location, which);
                self.match_weight += LinearHashing::weight_of(length);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    #[inline]
    fn take(
        &mut self,
        location: &GrowingLocation,
        value: u64,
        is_counted: impl FnOnce(u64) -> bool,
    ) -> Option<Taken> {
        let Some((longest, matches)) = self.longest_with(location, value) else {
            return Some(Taken::Absent);
        };
        if is_counted(self.name(&longest)) {
            return None;
        }
        self.write(&longest, 0);
        Some(if matches == 1 { Taken::Last } else { Taken::Copy })
    }

    fn revalue(&mut self, location: &GrowingLocation, old: u64, new: u64) -> bool {
        let Some((longest, _)) = self.longest_with(location, old) else { return false };
        let slot = self.layout.slot(self.layout.fingerprint_of(longest.slot), new);
        self.write(&longest, slot);
        true
    }

    fn divisible_load(&self, entries: u64) -> f64 {
        let (entries, void) = (entries as f64, self.void_entries(entries));
        let slots = (self.geometry.buckets() * SLOTS as u64) as f64;
        (entries - void) / (slots - void).max(1.0)
    }

    fn may_gain_room(&self, entries: u64) -> bool {
        self.geometry.can_grow() && !self.is_sparse(entries)
    }

    fn nth_to_split(&self, others: u64) -> Option<u64> {
        let bucket = || self.geometry.bucket_to_split(self.geometry.split() + others);
        (others < self.chunk()).then(bucket)
    }

    fn split(&mut self, doubled: &mut impl FnMut(u64, u64, [u64; 2])) -> Step {
        let buckets = self.geometry.buckets();
        if self.widen((buckets / 16).clamp(1, MAX_WIDENED)) {
            return Step::Done;
        }
        let chunk = self.chunk();
        if !self.may_split() {
            return Step::Refused;
        }
        let bytes = table_bytes(self.layout, buckets + chunk);
        if !bytes.is_some_and(|bytes| self.bytes.grow(bytes)) {
            return Step::NoMemory;
        }
        (0..chunk).for_each(|_| self.split_next(doubled));
        self.set_limit();
        Step::Done
    }

    fn reserve_steps(&mut self) -> Option<u64> {
        let buckets = self.geometry.buckets();
        if !self.may_split() {
            return Some(buckets);
        }
        let most = buckets_after_steps(self.geometry.level_buckets(), buckets);
        self.bytes.reserve(table_bytes(self.layout, most)?).then_some(most)
    }

    fn finish_widening(&mut self) -> bool {
        self.widen(u64::MAX)
    }
}

/// Fills an empty slot of the emptier bucket of a pair with the slot for that bucket, if at most
/// `most` entries match the keys. Returns which bucket it was.
#[inline(always)]
fn put<P: Packing>(
    packing: &P,
    bytes: &mut [u8],
    starts: [u64; 2],
    (keys, slots): ([u64; 2], [u64; 2]),
    most: u64,
) -> Result<usize, Put> {
    if packing.matches::<Prefixed>(bytes, starts, keys) {
        let copies = packing.candidates::<Prefixed>(bytes, starts, keys).count_left() as u64;
        if copies > most {
            return Err(Put::Repeated(copies));
        }
    }
    let vacancies = starts.map(|start| packing.vacancies(bytes, start));
    let chosen = usize::from(vacancies[1] > vacancies[0]);
    if vacancies[chosen] == 0 {
        return Err(Put::Full);
    }
    packing.replace(bytes, starts[chosen], 0, slots[chosen]);
    Ok(chosen)
}
