//! A filter that many threads share: the table of `CuckooFilter`, where each bucket changes
//! atomically and lookups never wait.
//!
//! A lookup could miss an entry in only one way. It reads bucket A; then another thread writes the
//! entry, or an equal one, to A and clears it from B; then the lookup reads B. Two rules prevent
//! that:
//!
//! * A thread that writes an entry into a bucket counts an *arrival* of its shard afterwards,
//!   before it does anything else to the entry.
//! * A lookup that finds nothing reads the arrivals again. If there was one, it reads the buckets
//!   again.
//!
//! ```text
//!     move or insert   copy into A  ->  arrivals + 1  ->  clear B (this thread, or a later remove)
//!     lookup           arrivals v1  ->  read A  ->  read B  ->  arrivals v2, "no" only if v1 = v2
//! ```
//!
//! Why that suffices: a lookup that reads B after the clear sees the earlier arrival in v2. If
//! v1 = v2, then v1 saw it too. The read of A comes after v1, so it sees the copy.
//!
//! Further rules:
//!
//! * There are 32 shards, chosen by fingerprint (`shards.rs`). In each, one thread at a time counts
//!   copies or moves entries, and no thread removes entries meanwhile. So no copy is counted for an
//!   entry that is being removed, and no entry is removed twice while a move holds it in two
//!   buckets.
//! * In each segment, one thread at a time moves entries along the path that `table/search` found.
//!   It checks each step. If the table has changed since, it stops and searches again. After every
//!   step, every entry is in one of its buckets.
//! * Threads that insert copies of one key at once may fill more than the two slots that a plain
//!   filter uses for copies. Each may find no copy in either bucket and then write to a bucket that
//!   has not changed. These copies are counted and removed like any others.
//! * A thread locks the segment before the shard, and several shards in ascending order.
//!
//! `tests/loom.rs` checks all interleavings of two threads on tables of a few buckets;
//! `tests/it/concurrent.rs` checks many threads under load.

mod builder;
mod cells;
mod convert;
mod edit;
mod many;
mod shards;
mod sync;
mod words;

use alloc::boxed::Box;
use core::fmt;

use crate::Key;
use crate::address::geometry::{Location, possible_entries};
use crate::address::hash::KeyHasher;
use crate::address::hash::Route;
use crate::image::shape::Profile;
use crate::packing::{Layout, SLOTS};
use crate::side::Counters;
use crate::table::search::Search;
use cells::Cells;
use shards::Shards;
use sync::Mutex;

/// The most searches in a filter. If it has more segments, which takes 2 GiB, several segments
/// share a search. A search takes about 40 KiB once it has been used, 270 KiB at most.
const MOST_SEARCHES: u64 = 1024;

/// A [`CuckooFilter`](crate::CuckooFilter) that many threads use at once, through a shared
/// reference.
///
/// It makes the same promises: [`contains`](Self::contains) always finds a key that is in the set,
/// an [`insert`](Self::insert) that fails changes nothing, and a filter built for n keys takes n
/// distinct keys, each any number of times. A key is in the set from the return of its insert to
/// the call of the remove that takes its last copy. **Remove only keys that were inserted.**
///
/// One promise is smaller: it has no stash. Of keys that somebody chose for one pair of buckets, it
/// takes eight, and an insert of a ninth fails. A secret, [`sip_key`](crate::Builder::sip_key),
/// prevents such a choice.
///
/// ```
/// use koel::ConcurrentFilter;
///
/// let seen = ConcurrentFilter::builder(10_000, 0.001).build()?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| seen.insert("ada@example.org"));
///     scope.spawn(|| seen.insert("grace@example.org"));
/// });
/// assert!(seen.contains("ada@example.org") && seen.contains("grace@example.org"));
/// assert!(seen.remove("ada@example.org"));
/// # Ok::<(), koel::BuildError>(())
/// ```
///
/// # Which operations wait
/// * **Lookups** are lock-free. They repeat while entries with the same low bits of the fingerprint
///   keep arriving.
/// * **Inserts of new keys** that find a free slot are one compare-and-swap, and lock-free. Below a
///   load of 0.85, nearly all do. The others move entries, one insert at a time in each segment of
///   about 2 MiB.
/// * **Removes** are one compare-and-swap under a read lock. They wait while another thread moves
///   or counts an entry of their shard, one of 32 chosen by fingerprint. That takes a few hundred
///   nanoseconds.
/// * **Repeated keys**, new ones of [`insert_unique`](Self::insert_unique) and
///   [`count`](Self::count) wait for each other in the same way.
/// * During a [`snapshot`](Self::snapshot), everything waits except lookups, and
///   [`insert`](Self::insert) of new keys into free slots.
///
/// It has no `refute`: each lookup that matches would search corrections while others change them.
/// A [`CuckooFilter`](crate::CuckooFilter::refute) has it.
///
/// # Size and false-positive rate
/// A bucket fills an atomic word, so there are two fingerprint widths for each preference. A rate
/// in between gets the next smaller one:
///
/// | preference | fingerprint bits | rate at capacity | bits per key |
/// |---|--:|--:|--:|
/// | [`Prefer::Small`](crate::Prefer::Small) | 9 | 1.6 % | 8.3 |
/// | `Prefer::Small` | 17 | 0.006 % | 16.5 |
/// | [`Prefer::Fast`](crate::Prefer::Fast) | 8 | 3.0 % | 8.4 |
/// | `Prefer::Fast` | 16 | 0.012 % | 16.9 |
///
/// Counts and locks take 25 KiB more. Each segment in which entries have moved takes about 40 KiB,
/// or up to 270 KiB after an insert has failed.
///
/// # To a file and back
/// [`snapshot`](Self::snapshot) and [`into_filter`](Self::into_filter) return a `CuckooFilter` with
/// the same buckets, which can be saved, viewed and merged. `ConcurrentFilter::try_from` takes one.
/// No key is hashed again.
pub struct ConcurrentFilter {
    cells: Cells,
    shards: Shards,
    /// One for each segment, locked while entries of the segment are moved. If there are very many
    /// segments, several share one.
    searches: Box<[Mutex<Search>]>,
    profile: Profile,
}

impl ConcurrentFilter {
    fn new(cells: Cells, entries: u64, counters: &Counters, profile: Profile) -> Self {
        let shards = Shards::new(entries, counters, &cells.geometry, profile.counter_limit);
        let segments = (1 << cells.geometry.segment_bits()).min(MOST_SEARCHES);
        let searches = (0..segments).map(|_| Mutex::new(Search::default())).collect();
        Self { cells, shards, searches, profile }
    }

    /// Whether `key` is in the set. Always true for a key that is; true for another key with
    /// probability [`false_positive_rate`](Self::false_positive_rate). Lock-free. O(1): reads two
    /// buckets. An integer of another type is [another key](crate::Key).
    // Always inlined: as a call, a lookup of a ready hash takes a quarter more instructions.
    #[inline(always)]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self.route().xxh3_only(key) {
            Some(address) => self.contains_at(address),
            None => self.contains_other(key),
        }
    }

    /// [`contains`](Self::contains) for keys that are not hashed with XXH3 alone. Out of line, so
    /// that loops over lookups need not save registers for a call.
    #[cold]
    #[inline(never)]
    fn contains_other<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.route().address(key))
    }

    /// [`contains`](Self::contains) at the address of a key.
    #[inline(always)]
    fn contains_at(&self, address: u64) -> bool {
        self.contains_location(&self.cells.geometry.locate(address))
    }

    /// Reads the two buckets of a key, and repeats that if an entry of its shard arrived meanwhile.
    /// A hit need not check the arrivals, but the check costs less than a branch on the hit. One
    /// loop with one exit costs less than a call for the second attempt.
    #[inline(always)]
    fn contains_location(&self, location: &Location) -> bool {
        let shard = self.shards.of(location.fingerprint);
        loop {
            let before = shard.arrivals();
            let found = self.cells.contains(location);
            if shard.is_still(before) {
                return found;
            }
        }
    }

    /// How often `key` was inserted and not removed. Never too low. With probability
    /// [`false_positive_rate`](Self::false_positive_rate) it includes the count of another key with
    /// the same fingerprint in the same buckets. O(log of the number of counters).
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_location(&self.cells.geometry.locate(self.route().address(key)))
    }

    fn count_location(&self, location: &Location) -> u64 {
        let shard = self.shards.of(location.fingerprint);
        let counters = shard.read();
        loop {
            let before = shard.arrivals();
            let copies = self.cells.copies(location);
            if shard.is_still(before) {
                return copies.saturating_add(counters.get(self.name(location)).unwrap_or(0));
            }
        }
    }

    /// The name of the entry at `location`, and of its counter.
    fn name(&self, location: &Location) -> u64 {
        location.name(&self.cells.geometry)
    }
}

/// Sizes. While threads insert or remove, the figures that depend on the keys are approximate;
/// otherwise they are exact.
impl ConcurrentFilter {
    /// Keys inserted and not removed, copies included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shards.entries().saturating_add(self.shards.counted())
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Distinct keys that the filter was built for. So many always fit, and the false-positive rate
    /// is then at most the one given to the builder.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.profile.capacity
    }

    /// Slots of all buckets.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.cells.geometry.buckets() * SLOTS as u64
    }

    /// Slots that hold an entry.
    #[must_use]
    pub fn slots_in_use(&self) -> u64 {
        self.shards.entries()
    }

    /// The share of slots in use, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.slots_in_use() as f64 / self.slots() as f64
    }

    /// Probability that an absent key is reported as present, as the filter is now. A little too
    /// high if keys repeat, because second copies in the buckets count as other keys. The figure of
    /// a [`snapshot`](Self::snapshot) is exact.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let bits = self.cells.layout.fraction_bits();
        let possible = possible_entries(bits, self.cells.geometry.buckets());
        self.slots_in_use() as f64 / possible
    }

    /// Bytes of the buckets in memory. Counters take about 30 bytes more each. For locks and
    /// searches see [the type](Self#size-and-false-positive-rate).
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.cells.size_in_bytes()
    }

    /// Keys that have a counter for copies beyond those in the buckets.
    #[must_use]
    pub fn distinct_counters(&self) -> u64 {
        self.shards.counters()
    }

    /// The packing of the buckets.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.cells.layout
    }

    /// The function that hashes keys.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.route().hasher()
    }

    /// Whether the filter takes ready hashes as they are: see
    /// [`trust_hashes`](crate::Builder::trust_hashes).
    #[must_use]
    pub fn trusts_hashes(&self) -> bool {
        self.route().trusts_hashes()
    }

    /// Bytes of the application: see [`application`](crate::Builder::application).
    #[must_use]
    pub fn application(&self) -> [u8; 8] {
        self.profile.application
    }

    #[inline(always)]
    fn route(&self) -> &Route {
        &self.profile.route
    }
}

/// One line, without the table.
impl fmt::Debug for ConcurrentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ConcurrentFilter({} keys, capacity {}, {}, load {:.3}, {} bytes)",
            self.len(),
            self.capacity(),
            self.layout(),
            self.load_factor(),
            self.size_in_bytes()
        )
    }
}
