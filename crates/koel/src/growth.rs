//! A table that grows as entries come, without their keys: when it grows, and what that costs.
//!
//! * **Load.** The next chunk of buckets is split when entries exceed the share of the slots that [`DESIGN_LOADS`] says. It depends on how far the level has come: in
//!   the middle, where half of the buckets have twice the keys of the others, a search for room fails a little earlier. A search
//!   that fails nevertheless splits the next chunk, so that an insert never fails for want of slots.
//! * **Pauses.** A chunk is a 64th of the level, at most [`MAX_CHUNK`] buckets: less than a millisecond. A table built without marks is widened first, once: a 16th with
//!   each insert, at most [`MAX_WIDENED`] buckets, where they are (table/widening.rs).
//! * **Error rate.** An entry of n bits beyond its bucket matches one key in 2^n. What growth takes from old entries, new ones have again; fingerprints get
//!   [`WIDENING`] bits when they are first marked, so that 20 doublings raise the rate by less than a third (docs/decisions/0008-growth.md has the
//!   measurements). The rate is known exactly at every moment: it is the [`mass`](Grown::mass) of the entries.
//!
//! Shared by filters and maplets: what is counted beside the slots is theirs.

use alloc::vec::Vec;
use core::iter;

use crate::buffer::{self, Buffer};
use crate::counters::Counters;
use crate::geometry::{CORES, Geometry};
use crate::layout::{Codec, Layout, SLOTS};
use crate::placement::{End, Plan, Search};
use crate::sizing;
use crate::table::{
    Addressing, EntryTest, Match, Prefix, Put, Site, Spot, Stretch, Table, table_bytes,
};

/// Bits that fingerprints get, besides the mark, when a table built without marks first grows.
pub(crate) const WIDENING: u32 = 6;
/// The most buckets that are widened at once: tens of microseconds. Lookups are slow until the last one is, so they are not few.
const MAX_WIDENED: u64 = 1024;
/// The most buckets that are split at once.
const MAX_CHUNK: u64 = 4096;
/// A table is not split where an absent key matches more entries than this on average. So many match only where most entries have no bits of their own, in a forged file or in a union of many
/// filters; such entries are in both halves of a bucket that is split, so splitting makes no room. A table that grew from the narrowest fingerprints to 2^27 times its size has 0.09.
const MOST_MATCHES: f64 = 0.1;
/// Below this load a search that fails says more about the keys than about the room: growing would not help them.
const HOPELESS_LOAD: f64 = 0.5;

/// Entries by slots, in thousandths, at which the next chunk is split, for every tenth of a level: where a search for room fails, less 18.
/// Measured by growing on failed searches alone.
const DESIGN_LOADS: [u64; 11] = [953, 929, 912, 904, 903, 910, 920, 931, 942, 950, 954];

/// So much lower is the load of tables whose packing is chosen for speed: a third less time for inserts, in 2 % more memory.
const SPEED_SLACK: u64 = 15;

/// The entries that a table is to hold once `split` of the buckets of a level are split.
fn design_limit(codec: Codec, split: u64, level_buckets: u64) -> u64 {
    let place = split * 10_000 / level_buckets;
    let (first, rest) = (usize::try_from(place / 1000).unwrap_or(0), place % 1000);
    let [low, high] = [DESIGN_LOADS[first], DESIGN_LOADS[first + 1]];
    let slack = if codec == Codec::Plain { SPEED_SLACK } else { 0 };
    let load = low * (1000 - rest) + high * rest - slack * 1000;
    (level_buckets + split) * SLOTS as u64 * load / 1_000_000
}

/// A table that grows, and what is known about it without reading it.
#[derive(Clone)]
pub(crate) struct Grown<B> {
    table: Table<B, Stretch>,
    /// The sum of 2^-length of all entries, in units of 2^-64.
    mass: u128,
    /// Entries beyond which the next chunk is split.
    limit: u64,
}

/// Equal entries in equal places, whatever is due next.
impl<B: PartialEq> PartialEq for Grown<B> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table && self.mass == other.mass
    }
}

impl<B: AsRef<[u8]>> Grown<B> {
    /// A table, the mass of its entries, and how many they are.
    pub(crate) fn new(table: Table<B, Stretch>, mass: u128, entries: u64) -> Self {
        let mut grown = Self { table, mass, limit: 0 };
        grown.limit = grown.design_limit().max(entries);
        grown
    }

    /// The same in memory of its own.
    pub(crate) fn to_owned_table(&self) -> Grown<Buffer> {
        Grown { table: self.table.to_owned_table(true), mass: self.mass, limit: self.limit }
    }

    /// Whether some buckets are still to be widened.
    #[inline]
    pub(crate) fn is_midway(&self) -> bool {
        self.addresses().widening().is_some()
    }

    pub(crate) fn table(&self) -> &Table<B, Stretch> {
        &self.table
    }

    /// Whether an entry matches the key with this hash. Not inlined, so that no register is saved for it in tables of one size.
    #[inline(never)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.table.contains_hash(hash)
    }

    /// Asks the memory for the buckets of the key with this hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.table.prefetch_site(&self.addresses().locate(hash));
    }

    #[inline]
    pub(crate) fn addresses(&self) -> &Stretch {
        self.table.geometry()
    }

    /// The sum of 2^-length of all entries, in units of 2^-64.
    pub(crate) fn mass(&self) -> u128 {
        self.mass
    }

    /// Entries that match an absent key, on average: each does if the key has its core, one of its two base buckets and its bits.
    pub(crate) fn matches_of_an_absent_key(&self) -> f64 {
        self.mass as f64 / mass_of(0) as f64 / self.addresses().places()
    }

    /// What a key of `prefix` counts at least; `count` says what those of a site do.
    pub(crate) fn least_count(&self, prefix: Prefix, count: &impl Fn(&Site) -> u64) -> u64 {
        match self.addresses().site(prefix) {
            Some(site) => count(&site),
            None => {
                let [one, other] =
                    prefix.continuations().map(|longer| self.least_count(longer, count));
                one.min(other)
            }
        }
    }

    /// The prefixes of the entries that match all keys of an entry, its own among them, the shortest first and each length once: each with its
    /// [`least_count`](Self::least_count). In this order a union makes up for the larger counts: what one lacks is not taken from what was added for another.
    pub(crate) fn known_less(
        &self,
        prefix: Prefix,
        count: &impl Fn(&Site) -> u64,
    ) -> Vec<(Prefix, u64)> {
        let Some(site) = self.addresses().site(prefix) else { return Vec::new() };
        let mut all: Vec<_> = self.table.matches(&site).map(|entry| entry.prefix).collect();
        all.sort_by_key(|prefix| prefix.length);
        all.dedup_by_key(|prefix| prefix.length);
        all.into_iter().map(|prefix| (prefix, self.least_count(prefix, count))).collect()
    }

    /// Hands every entry to `visit` that continues `prefix` and may forget what it knows beyond it.
    pub(crate) fn each_longer(&self, prefix: Prefix, visit: &mut impl FnMut(Match)) {
        self.table.each_relative(prefix, &mut |entry| {
            let tells = self.addresses().level_of(entry.bucket) <= prefix.length;
            if entry.prefix.length > prefix.length && tells {
                visit(entry);
            }
        });
    }

    /// What the mass of the entries is, read from the table. O(buckets).
    pub(crate) fn weigh(&self) -> u128 {
        (0..self.buckets())
            .flat_map(|bucket| self.table.entries_of(bucket))
            .map(|entry| mass_of(entry.prefix.length))
            .sum()
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.addresses().buckets()
    }

    fn design_limit(&self) -> u64 {
        let (codec, addresses) = (self.table.layout().codec(), self.addresses());
        design_limit(codec, addresses.split(), addresses.level_buckets())
    }
}

/// The addresses of the smallest table of this layout that is to hold so many entries, grown from one with the addresses of `base`; `None` where none can grow so far.
fn addresses_for(base: &Geometry, layout: Layout, entries: u64) -> Option<Stretch> {
    let marked = layout.marks()?;
    let at = |level: u32, split: u64| Stretch::new(base.clone(), marked, level, split);
    let holds = |level: u32, split: u64| {
        entries <= design_limit(layout.codec(), split, base.buckets() << level)
    };
    let mut levels = (0..u32::BITS).take_while(|&level| at(level, 0).is_sound());
    let whole = levels.find(|&level| holds(level, 0))?;
    let Some(below) = whole.checked_sub(1) else { return Some(at(whole, 0)) };
    let buckets = base.buckets() << below;
    let mut chunks = (1..64).map(|chunk| chunk * (buckets / 64).max(1));
    let part = chunks.find(|&split| split < buckets && holds(below, split));
    Some(part.map_or_else(|| at(whole, 0), |split| at(below, split)))
}

/// Whether a table of this layout, grown from one with the addresses of `base`, can be had that is to hold so many entries.
pub(crate) fn has_room_for(base: &Geometry, layout: Layout, entries: u64) -> bool {
    let addresses = addresses_for(base, layout, entries);
    let bytes = addresses.and_then(|addresses| table_bytes(layout, addresses.buckets()));
    bytes.is_some_and(buffer::can_be_had)
}

/// The error rate of a table with marks that is full after so many doublings: the old entries of each have half the bits of the next, measured as 0.73 of the first
/// rate for each doubling (docs/decisions/0008-growth.md).
pub(crate) fn rate_when_full(layout: Layout, doublings: f64) -> f64 {
    let fingerprints = (CORES << layout.fraction_bits()) as f64;
    let full = 2.0 * SLOTS as f64 * DESIGN_LOADS[10] as f64 / 1000.0 / fingerprints;
    full * (1.0 + 0.73 * doublings)
}

impl Layout {
    /// Whether a filter of this layout can grow: whether its slots have room for the bits that growth needs, or have them already. Those of the smallest error rates have not.
    #[must_use]
    pub fn can_grow(self) -> bool {
        self.marks().is_some() || marked_layout(self).is_some()
    }
}

/// The layout of a table that has grown, for one built with `layout` and no marks; `None` where slots have no room for the bits.
pub(crate) fn marked_layout(layout: Layout) -> Option<Layout> {
    let bits = layout.fingerprint_bits() + WIDENING + 1;
    let widths = sizing::widths(layout.codec());
    let width = widths.iter().copied().find(|&width| width >= bits)?;
    Layout::new(layout.codec(), width, layout.value_bits()).map(Layout::with_marks)
}

/// Hands the counter of a void entry that is split, if it has one, to its two halves, each with the full count.
pub(crate) fn leave_to_both(counters: &mut Counters, addresses: &Stretch, void: Prefix) {
    let count = counters.remove(addresses.identity(&void));
    for half in void.continuations() {
        counters.add_all(addresses.identity(&half), count);
    }
}

/// What an entry that is one of 2^length weighs.
pub(crate) fn mass_of(length: u32) -> u128 {
    (u128::from(u64::MAX) + 1) >> length
}

impl Grown<Buffer> {
    /// An empty table with the addresses of `base`; `None` where its bytes could not be addressed.
    pub(crate) fn empty(base: Geometry, layout: Layout) -> Option<Self> {
        let addresses = Stretch::new(base, layout.marks()?, 0, 0);
        if !addresses.is_sound() {
            return None;
        }
        Some(Self::new(Table::stretched(addresses, layout)?, 0, 0))
    }

    /// What a table of one size becomes that has so many entries, and no values: marked, and so able to grow. Its buckets are widened a few at a time, as
    /// [`split`](Self::split) is called. `None`, and nothing changed, where there is no memory for that. O(1).
    pub(crate) fn begun(built: &mut Table<Buffer>, layout: Layout, entries: u64) -> Option<Self> {
        let mass = u128::from(entries) * mass_of(built.geometry().fraction_bits());
        let table = Table::to_be_widened(built, layout)?;
        Some(Self { table, mass, limit: entries })
    }

    /// Widens all buckets that are narrow still; false if none is.
    pub(crate) fn finish_widening(&mut self) -> bool {
        let was_midway = self.table.widen(u64::MAX);
        if was_midway {
            self.raise_limit();
        }
        was_midway
    }

    /// Adds the longest prefix of a key where at most `most` entries match it.
    #[inline]
    pub(crate) fn put(&mut self, site: &Site, value: u64, most: u64) -> Put {
        match self.table.put_at(site, value, most) {
            Ok(spot) => {
                self.weigh_in(&site.prefix, spot);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    /// Takes out an entry.
    pub(crate) fn take(&mut self, entry: &Match) {
        self.table.replace(entry.bucket, entry.slot, 0);
        self.mass -= mass_of(entry.prefix.length);
        // Whatever goes meanwhile, each insert widens buckets.
        self.limit = self.limit.saturating_sub(u64::from(self.is_midway()));
    }

    /// Gives an entry another value.
    pub(crate) fn revalue(&mut self, entry: &Match, value: u64) -> bool {
        let layout = self.table.layout();
        let slot = layout.slot(layout.fingerprint_of(entry.slot), value);
        self.table.replace(entry.bucket, entry.slot, slot)
    }

    /// Makes an entry forget all bits beyond `length`, which its bucket stands for at least.
    pub(crate) fn shorten(&mut self, entry: &Match, length: u32) {
        self.mass -= mass_of(entry.prefix.length);
        let prefix = Prefix { length, ..entry.prefix };
        let value = self.table.layout().value_of(entry.slot);
        self.occupy((entry.bucket, entry.slot), &prefix, value);
    }

    /// The two entries of a bucket that have most in common, and how many bits that is; `None` where no two have a core in common.
    pub(crate) fn closest(&self, bucket: u64) -> Option<(Match, Match, u32)> {
        let entries = self.table.entries_of(bucket);
        let earlier = |n| self.table.entries_of(bucket).take(n);
        let pairs = entries.enumerate().flat_map(|(n, a)| earlier(n).map(move |b| (a, b)));
        let close = pairs.filter_map(|(a, b)| Some((a, b, a.prefix.in_common(&b.prefix)?)));
        close.max_by_key(|&(_, _, length)| length)
    }

    /// Adds the prefix of `site`, whose buckets are full, by moving others, of which those that are `pinned` forget nothing. False, and nothing changed, where there is no way.
    pub(crate) fn make_room(
        &mut self,
        search: &mut Search,
        site: &Site,
        value: u64,
        pinned: Option<&EntryTest<'_>>,
    ) -> bool {
        let roots = site.spots.map(|spot| spot.bucket);
        let Some(plan) = self.table.way_to_room(search, roots, pinned) else { return false };
        if let End::Empty(bucket) = plan.end {
            self.carry_out(&plan, bucket, site, value);
        }
        search.recycle(plan);
        true
    }

    /// Makes the moves of `plan`, the last one first and into bucket `room`, so that no entry is ever in no place, and adds the prefix of `site` where the first one was.
    fn carry_out(&mut self, plan: &Plan, room: u64, site: &Site, value: u64) {
        let mut free = (room, 0);
        for &from in plan.moves.iter().rev() {
            let prefix = self.weigh_out(from);
            self.occupy(free, &prefix, self.table.layout().value_of(from.1));
            free = from;
        }
        self.occupy(free, &site.prefix, value);
    }

    /// What a slot of a bucket stands for, which is about to leave it.
    fn weigh_out(&mut self, (bucket, slot): (u64, u64)) -> Prefix {
        let prefix = self.addresses().prefix(bucket, self.table.layout().fingerprint_of(slot));
        self.mass -= mass_of(prefix.length);
        prefix
    }

    /// Writes a prefix, as much of it as there is room for, over a slot of one of its buckets: one that is empty, or that was weighed out.
    fn occupy(&mut self, (bucket, old): (u64, u64), prefix: &Prefix, value: u64) {
        let spot = self.addresses().spot_of(bucket);
        let fingerprint = self.addresses().fingerprint(prefix, spot);
        self.table.replace(bucket, old, self.table.layout().slot(fingerprint, value));
        self.weigh_in(prefix, spot);
    }

    fn weigh_in(&mut self, prefix: &Prefix, spot: Spot) {
        self.mass += mass_of(self.addresses().longest_in(spot).min(prefix.length));
    }

    /// Whether so many entries are more than the table should hold.
    #[inline]
    pub(crate) fn is_due(&self, entries: u64) -> bool {
        entries > self.limit
    }

    /// Whether splitting buckets can help one of so many entries for which no room was found.
    pub(crate) fn is_hopeful(&self, entries: u64) -> bool {
        self.addresses().can_grow() && !self.is_sparse(entries)
    }

    /// Whether so many entries leave so much room that a search which found none says more about the keys.
    pub(crate) fn is_sparse(&self, entries: u64) -> bool {
        let slots = self.buckets() * SLOTS as u64;
        entries as f64 <= HOPELESS_LOAD * slots as f64
    }

    /// Splits the next chunk of buckets, or widens the next ones, which comes first. Hands void entries, which are in two buckets from now on, to `doubled`. False, and nothing changed, where the
    /// table is as large as its addresses or the memory allow, or where that would make no room.
    pub(crate) fn split(&mut self, mut doubled: impl FnMut(&Stretch, Prefix)) -> bool {
        if self.table.widen((self.buckets() / 16).clamp(1, MAX_WIDENED)) {
            self.raise_limit();
            return true;
        }
        let addresses = self.addresses();
        let level = addresses.level_buckets();
        let chunk = (level / 64).clamp(1, MAX_CHUNK).min(level - addresses.split());
        let helps = addresses.can_grow() && self.matches_of_an_absent_key() < MOST_MATCHES;
        if !helps || !self.table.extend(chunk) {
            return false;
        }
        (0..chunk).for_each(|_| self.table.split_next(&mut doubled));
        self.raise_limit();
        true
    }

    /// After a step of growth: to what is designed, or to one entry more where there are more than that, so that one insert makes one step. A table that was just widened is fuller than
    /// it should be.
    fn raise_limit(&mut self) {
        let designed = if self.is_midway() { 0 } else { self.design_limit() };
        self.limit = designed.max(self.limit + 1);
    }

    /// The same entries in the smallest table that takes all of them, as `move_to` moves them into an empty one, and what it tells; `None` where that is no smaller than this one. Tables for
    /// ever more of them are tried, the first one for `entries`: the halves of void entries, which growth has spread over many buckets, are all in two of a table that is too small.
    pub(crate) fn in_fewer_buckets<T>(
        &self,
        entries: u64,
        move_to: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<(Self, T)> {
        let rooms = iter::successors(Some(entries), |room| room.checked_mul(2));
        rooms.map_while(|room| self.smaller(room)).find_map(|mut smaller| {
            let told = move_to(&mut smaller)?;
            (smaller.buckets() < self.buckets()).then_some((smaller, told))
        })
    }

    /// The smallest table of the same kind that is to hold so many entries, empty; `None` where that is no smaller than this one.
    fn smaller(&self, entries: u64) -> Option<Self> {
        let layout = self.table.layout();
        let addresses = addresses_for(self.addresses().base(), layout, entries)?;
        if addresses.buckets() >= self.buckets() {
            return None;
        }
        Some(Self::new(Table::stretched(addresses, layout)?, 0, 0))
    }

    /// Forgets all entries; the size stays.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.mass = 0;
        self.finish_widening();
    }
}
