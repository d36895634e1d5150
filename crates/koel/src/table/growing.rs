//! A table that grows as entries come, without their keys: linear hashing under cuckoo hashing.
//!
//! * **Load.** The next chunk of buckets is split when the entries exceed the design load
//!   (load.rs). A search for room that fails splits the next chunk too.
//! * **Pauses.** A chunk is a 64th of the level, at most [`MAX_CHUNK`] buckets: less than a
//!   millisecond. A table that was built without marks is widened first, once: each insert widens
//!   a 16th of it, at most [`MAX_WIDENED`] buckets, in place (widening.rs).
//! * **False-positive rate.** An entry of n bits beyond its bucket matches one key in 2^n. The
//!   rate is known exactly at every moment: it follows from the match weight, the sum of 2^-length
//!   over all entries.
//!
//! What happens to counters and totals is in `state/`.

use core::{iter, mem};

use super::load::{addresses_for, design_limit};
use super::{
    Addressing, Candidates, Cuckoo, CuckooMut, EntryTest, GrowingLocation, LeveledBucket,
    LinearHashing, Match, Prefix, Prefixes, Put, Removed, Table,
};
use crate::address::geometry::Geometry;
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, SLOTS};
use crate::table::search::{End, EvictionPath, Frontier, Search, Spares};

/// The most buckets that are widened at once: tens of microseconds. Not fewer, since lookups are
/// slow until the last bucket is wide.
const MAX_WIDENED: u64 = 1024;
/// The most buckets that are split at once.
const MAX_CHUNK: u64 = 4096;
/// A table is not split where an absent key matches more entries than this on average. That happens
/// only where most entries have no bits of their own, in a forged file or in a union of many
/// filters. Such entries go to both halves of a bucket, so splitting makes no room. A table that
/// grew from the narrowest fingerprints to 2^27 times its size has 0.09.
const MOST_MATCHES: f64 = 0.1;
/// Below this load a failed search says more about the keys than about the room: growth would not
/// help them.
const HOPELESS_LOAD: f64 = 0.5;

/// A table that grows, and what is known about it without reading it.
#[derive(Clone)]
pub(crate) struct Growing<B> {
    table: Table<B, LinearHashing>,
    /// The sum of 2^-length of all entries, in units of 2^-64.
    match_weight: u128,
    /// Entries beyond which the next chunk is split.
    limit: u64,
}

/// Equal entries in equal buckets, whatever is due next.
impl<B: PartialEq> PartialEq for Growing<B> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table && self.match_weight == other.match_weight
    }
}

/// How likely an entry of this length matches a key with its core and its base bucket.
fn weight_of(length: u32) -> u128 {
    (u128::from(u64::MAX) + 1) >> length
}

impl<B: AsRef<[u8]>> Growing<B> {
    /// A table, the match weight of its entries, and their number.
    pub(crate) fn new(table: Table<B, LinearHashing>, match_weight: u128, entries: u64) -> Self {
        let mut growing = Self { table, match_weight, limit: 0 };
        growing.limit = growing.design_limit().max(entries);
        growing
    }

    /// A copy in memory of its own. `None` where the system has no memory for it.
    pub(crate) fn to_owned_table(&self) -> Option<Growing<Buffer>> {
        let Self { match_weight, limit, .. } = *self;
        Some(Growing { table: self.table.to_owned_table(true)?, match_weight, limit })
    }

    /// Whether some buckets are still to be widened.
    #[inline]
    pub(crate) fn is_midway(&self) -> bool {
        self.addresses().widening().is_some()
    }

    #[inline]
    pub(crate) fn addresses(&self) -> &LinearHashing {
        self.table.geometry()
    }

    /// The sum of 2^-length of all entries, in units of 2^-64.
    pub(crate) fn match_weight(&self) -> u128 {
        self.match_weight
    }

    /// The match weight, computed from the buckets. O(buckets).
    pub(crate) fn computed_weight(&self) -> u128 {
        self.table.entries().map(|entry| weight_of(entry.prefix.length)).sum()
    }

    /// Entries that match an absent key on average: each does if the key has its core, one of its
    /// two base buckets and its bits.
    pub(crate) fn matches_of_an_absent_key(&self) -> f64 {
        self.match_weight as f64 / weight_of(0) as f64 / self.addresses().locations()
    }

    /// The slots that match the key with this hash.
    pub(crate) fn candidates(&self, hash: u64) -> Candidates {
        let location = self.addresses().locate(hash);
        self.table.candidates(location.buckets(), self.table.keys(&location))
    }

    /// The smallest table of the same kind that takes all entries as `move_to` moves them into an
    /// empty one, with what `move_to` returns; `None` where that is no smaller than this one. The
    /// first table tried is one for `entries`. The halves of a void entry, which growth has spread
    /// over many buckets, are all in two of a table that is too small, so larger ones are tried.
    pub(crate) fn in_fewer_buckets<T>(
        &self,
        entries: u64,
        move_to: impl Fn(&mut Growing<Buffer>) -> Option<T>,
    ) -> Option<(Growing<Buffer>, T)> {
        let rooms = iter::successors(Some(entries), |room| room.checked_mul(2));
        rooms.map_while(|room| self.smaller(room)).find_map(|mut smaller| {
            let moved = move_to(&mut smaller)?;
            (smaller.buckets() < self.buckets()).then_some((smaller, moved))
        })
    }

    /// The smallest table of the same kind that holds so many entries, empty; `None` where that is
    /// no smaller than this one.
    fn smaller(&self, entries: u64) -> Option<Growing<Buffer>> {
        let layout = self.table.layout();
        let addresses = addresses_for(self.addresses().base(), layout, entries)?;
        if addresses.buckets() >= self.buckets() {
            return None;
        }
        Some(Growing::new(Table::stretched(addresses, layout)?, 0, 0))
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.addresses().buckets()
    }

    fn design_limit(&self) -> u64 {
        let (codec, addresses) = (self.table.layout().codec(), self.addresses());
        design_limit(codec, addresses.split(), addresses.level_buckets())
    }

    /// The entry with most bits of those that match a key and have this value, and how many they
    /// are.
    #[inline]
    fn longest_with(&self, hash: u64, value: u64) -> Option<(Match, u64)> {
        let (layout, mut matches) = (self.table.layout(), 0);
        let location = self.addresses().locate(hash);
        let entries = self.table.matches(&location);
        let with_value = entries.filter(|entry| layout.value_of(entry.slot) == value);
        let longest = with_value.inspect(|_| matches += 1).max_by_key(|entry| entry.prefix.length);
        longest.map(|entry| (entry, matches))
    }

    /// The two entries of a bucket that have most bits in common, and how many bits that is.
    fn closest_in(&self, bucket: u64) -> Option<(Match, Match, u32)> {
        let entries = self.table.entries_of(bucket);
        let earlier = |n| self.table.entries_of(bucket).take(n);
        let pairs = entries.enumerate().flat_map(|(n, a)| earlier(n).map(move |b| (a, b)));
        let close = pairs.filter_map(|(a, b)| Some((a, b, a.prefix.in_common(&b.prefix)?)));
        close.max_by_key(|&(_, _, length)| length)
    }
}

impl<B: AsRef<[u8]>> Cuckoo for Growing<B> {
    type Bytes = B;
    type Addresses = LinearHashing;

    #[inline(always)]
    fn table(&self) -> &Table<B, LinearHashing> {
        &self.table
    }

    /// Not inlined, so that lookups in tables of one size save no register for it.
    #[inline(never)]
    fn contains(&self, hash: u64) -> bool {
        self.table.contains_hash(hash)
    }
}

impl Growing<Buffer> {
    /// An empty table with the addresses of `base`; `None` where its bytes cannot be addressed or
    /// had.
    pub(crate) fn empty(base: Geometry, layout: Layout) -> Option<Self> {
        let addresses = LinearHashing::new(base, layout.marks()?, 0, 0);
        if !addresses.is_sound() {
            return None;
        }
        Some(Self::new(Table::stretched(addresses, layout)?, 0, 0))
    }

    /// What a table of one size becomes that has so many entries and no values: marked, and so able
    /// to grow. [`split`](CuckooMut::split) widens its buckets, a few at a time. `None`, and
    /// nothing changed, where there is no memory for that. O(1).
    pub(crate) fn begun(built: &mut Table<Buffer>, layout: Layout, entries: u64) -> Option<Self> {
        let match_weight = u128::from(entries) * weight_of(built.geometry().fraction_bits());
        let stand_in = Table::stand_in(built.layout())?;
        match Table::to_be_widened(mem::replace(built, stand_in), layout) {
            Ok(table) => Some(Self { table, match_weight, limit: entries }),
            Err(unchanged) => {
                *built = unchanged;
                None
            }
        }
    }

    /// Empties every bucket; the size stays.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.match_weight = 0;
        self.finish_widening();
    }

    /// Takes the weight of what a slot holds that is about to leave its bucket. Returns what it
    /// stands for.
    fn subtract_weight(&mut self, (bucket, slot): (u64, u64)) -> Prefix {
        let prefix = self.addresses().prefix(bucket, self.table.layout().fingerprint_of(slot));
        self.match_weight -= weight_of(prefix.length);
        prefix
    }

    fn add_weight(&mut self, prefix: &Prefix, leveled: LeveledBucket) {
        let length = self.addresses().longest_in(leveled).min(prefix.length);
        self.match_weight += weight_of(length);
    }

    /// Writes as much of a prefix as there is room for over a slot of one of its buckets. The slot
    /// is empty, or its weight was subtracted.
    fn occupy(&mut self, (bucket, old): (u64, u64), prefix: &Prefix, value: u64) {
        let leveled = self.addresses().leveled_bucket(bucket);
        let fingerprint = self.addresses().fingerprint(prefix, leveled);
        self.table.replace(bucket, old, self.table.layout().slot(fingerprint, value));
        self.add_weight(prefix, leveled);
    }

    /// Sets the limit after a step of growth: to the design limit, or to one entry more where there
    /// are more than that, so that one insert makes one step. A table that was just widened is
    /// fuller than designed.
    fn raise_limit(&mut self) {
        let designed = if self.is_midway() { 0 } else { self.design_limit() };
        self.limit = designed.max(self.limit + 1);
    }
}

impl CuckooMut for Growing<Buffer> {
    /// Not inlined, so that inserts into tables of one size save no register for it.
    #[inline(never)]
    fn put_key(&mut self, hash: u64, value: u64, most: u64) -> (GrowingLocation, Put) {
        let location = self.addresses().locate(hash);
        (location, self.put(&location, value, most))
    }

    #[inline]
    fn put(&mut self, location: &GrowingLocation, value: u64, most: u64) -> Put {
        match self.table.put_at(location, value, most) {
            Ok(leveled) => {
                self.add_weight(&location.prefix, leveled);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    #[inline]
    fn take_key(&mut self, hash: u64, value: u64, is_counted: impl FnOnce(u64) -> bool) -> Removed {
        let Some((longest, matches)) = self.longest_with(hash, value) else {
            return Removed::Nothing;
        };
        if is_counted(self.table.name(&longest)) {
            return Removed::Counted;
        }
        self.write(&longest, 0);
        if matches == 1 { Removed::Last } else { Removed::Copy }
    }

    fn revalue_key(&mut self, hash: u64, old: u64, new: u64) -> bool {
        let Some((longest, _)) = self.longest_with(hash, old) else { return false };
        let layout = self.table.layout();
        self.write(&longest, layout.slot(layout.fingerprint_of(longest.slot), new));
        true
    }

    fn write(&mut self, entry: &Match, slot: u64) {
        self.table.replace(entry.bucket, entry.slot, slot);
        if slot == 0 {
            self.match_weight -= weight_of(entry.prefix.length);
            // While buckets are being widened, every insert widens some, whatever is removed.
            self.limit = self.limit.saturating_sub(u64::from(self.is_midway()));
        }
    }

    fn way_to_room(
        &self,
        search: &mut Search,
        location: &GrowingLocation,
        _: Spares,
        pinned: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        self.table.way_to_room(
            search,
            location.leveled_buckets.map(|leveled| leveled.bucket),
            pinned,
        )
    }

    fn carry_out(&mut self, plan: &EvictionPath, location: &GrowingLocation, value: u64) {
        let End::Empty(room) = plan.end else { return };
        let mut free = (room, 0);
        for &from in plan.moves.iter().rev() {
            let prefix = self.subtract_weight(from);
            self.occupy(free, &prefix, self.table.layout().value_of(from.1));
            free = from;
        }
        self.occupy(free, &location.prefix, value);
    }

    fn open(
        &self,
        _: &GrowingLocation,
        bucket: u64,
        pinned: Option<&EntryTest<'_>>,
        ways: &mut Frontier,
    ) {
        self.table.open(bucket, pinned, ways);
    }

    fn relocate(&self, location: &GrowingLocation) -> GrowingLocation {
        self.addresses().location(location.prefix).unwrap_or(*location)
    }

    #[inline]
    fn is_due(&self, entries: u64) -> bool {
        entries > self.limit
    }

    fn is_hopeful(&self, entries: u64) -> bool {
        self.addresses().can_grow() && !self.is_sparse(entries)
    }

    fn is_sparse(&self, entries: u64) -> bool {
        let slots = self.buckets() * SLOTS as u64;
        entries as f64 <= HOPELESS_LOAD * slots as f64
    }

    fn split(&mut self, doubled: &mut impl FnMut(u64, [u64; 2])) -> bool {
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
        let mut leave_to_both = |addresses: &LinearHashing, void: Prefix| {
            let halves = void.continuations().map(|half| addresses.identity(&half));
            doubled(addresses.identity(&void), halves);
        };
        (0..chunk).for_each(|_| self.table.split_next(&mut leave_to_both));
        self.raise_limit();
        true
    }

    fn finish_widening(&mut self) -> bool {
        let was_midway = self.table.widen(u64::MAX);
        if was_midway {
            self.raise_limit();
        }
        was_midway
    }

    fn is_alone(location: &GrowingLocation) -> bool {
        location.leveled_buckets[0] == location.leveled_buckets[1]
    }

    fn is_short(&self, location: &GrowingLocation) -> bool {
        self.addresses().is_short(location)
    }

    fn is_whole(&self, entry: &Match, prefix: &Prefix) -> bool {
        let most = self.addresses().level() + self.addresses().marked().most();
        entry.prefix.length >= prefix.length.min(most)
    }

    fn closest(&self, location: &GrowingLocation) -> Option<(Match, Match, u32)> {
        let pairs = location
            .leveled_buckets
            .into_iter()
            .filter_map(|leveled| self.closest_in(leveled.bucket));
        pairs.max_by_key(|&(_, _, length)| length)
    }

    fn may_shorten(&self, entry: &Match, length: u32) -> bool {
        let level = self.addresses().level_of(entry.bucket);
        entry.prefix.length > length && level <= length
    }

    fn shorten(&mut self, entry: &Match, length: u32, value: u64) {
        self.match_weight -= weight_of(entry.prefix.length);
        let prefix = Prefix { length, ..entry.prefix };
        self.occupy((entry.bucket, entry.slot), &prefix, value);
    }
}
