//! One filter, many threads: the table of `CuckooFilter`, with buckets that change one at a time
//! and lookups that never wait.
//!
//! The only way to miss an entry that is there: a lookup reads bucket A, then the entry, or an
//! equal one, comes to A and leaves B, then the lookup reads B. Hence two rules. Who writes an
//! entry into a bucket says so afterwards, in the *arrivals* of its shard, before anything else
//! happens to it. And who found nothing looks at the arrivals again, and if there was one, at the
//! buckets too. Why that suffices:
//!
//! ```text
//!     move or insert   copy into A  ->  arrivals + 1  ->  clear B (this thread, or a later remove)
//!     lookup           arrivals v1  ->  read A  ->  read B  ->  arrivals v2, "no" only if v1 = v2
//! ```
//!
//! * A lookup that reads B after the clear sees the arrival before it in v2. If v1 = v2, v1 saw it
//!   too, and then the read of A, which comes after, sees the copy.
//! * Copies are counted, and entries moved, by one thread at a time for each of 32 shards
//!   (`shards.rs`), and not while one is taken out of that shard: no copy is counted beside an
//!   entry that is just leaving, none is taken out twice because it is in two places for a moment.
//! * One thread at a time moves entries within a segment, after the plan of `placement.rs`. It
//!   checks each step: if the table has changed since, it stops and plans anew. Every step leaves
//!   every entry in its place.
//! * Copies of one key that threads insert at the same time may take more than the two slots that a
//!   plain filter has for them: who found none in either bucket adds one to a bucket that has not
//!   changed since, whatever has come to the other. They are counted and removed as any others.
//! * Locks are taken in the order segment, shard; and of shards in ascending order.
//!
//! Checked by `tests/loom.rs` in all orders of two threads on tables of a few buckets, and by
//! `tests/it/concurrent.rs` under load.

mod builder;
#[macro_use]
mod cells;
mod convert;
mod edit;
mod many;
mod packed;
mod shards;
mod sync;

use alloc::boxed::Box;
use core::fmt;

use crate::Key;
use crate::address::geometry::Location;
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::image::shape::{self, Profile, Shape};
use crate::mem::buffer;
use crate::packing::{Layout, Narrow, SLOTS};
use crate::state::counters::{Counters, Identity, ReadCounters};
use crate::table::search::Search;
use cells::Cells;
use packed::{Atomic, Packed};
use shards::Shards;
use sync::Mutex;

/// At most so many searches: where there are more segments, which no builder makes below 2 GiB,
/// several share one. Each takes some 40 KiB once it has been used, 270 at most.
const MOST_SEARCHES: u64 = 1024;

/// A [`CuckooFilter`](crate::CuckooFilter) that many threads use at once, through a shared
/// reference.
///
/// The same promises: [`contains`](Self::contains) never says no for a key that is in the set, an
/// [`insert`](Self::insert) that fails adds nothing and loses nothing, and a filter built for n
/// keys takes n distinct keys, each any number of times. A key is in the set from the return of its
/// insert to the call of the remove that takes its last copy out. **Remove only keys that were
/// inserted.**
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
/// # Who waits for whom
/// * **Lookups never wait**; they look again while entries with the same low bits of the
///   fingerprint keep arriving. They are lock-free.
/// * **Inserts of new keys** into a free slot, all but a few below a load of 0.85, are one
///   compare-and-swap, lock-free too. Those for which entries must make way take turns within a
///   segment of about 2 MiB.
/// * **Removes** are one compare-and-swap under a lock that all removes share. They wait while an
///   entry of their shard, one of 32 by fingerprint, is moved or a copy of it counted: some hundred
///   nanoseconds.
/// * **Repeated keys** and [`count`](Self::count) wait for each other in the same way.
/// * [`snapshot`](Self::snapshot) holds up all of these but lookups and inserts of new keys into
///   free slots.
///
/// # Size and error rate
/// A bucket must fit into an atomic word, so fingerprints have 9 or 17 bits with
/// [`Prefer::Small`](crate::Prefer::Small), 8 or 16 with [`Prefer::Fast`](crate::Prefer::Fast): at
/// full capacity error rates of 1.6 % and 0.006 %, 3.0 % and 0.012 %, for 8.3, 16.5, 8.4 and 16.9
/// bits per key. A rate in between gets the next smaller one. On top come 25 KiB for counts and
/// locks, and some 40 KiB for each segment in which entries have made way, up to 270 where an
/// insert has failed.
///
/// # To a file and back
/// [`snapshot`](Self::snapshot) and [`into_filter`](Self::into_filter) give a `CuckooFilter` with
/// the same buckets, which has bytes, views and merges; `ConcurrentFilter::try_from` takes one. No
/// key is hashed again.
pub struct ConcurrentFilter {
    cells: Cells,
    shards: Shards,
    /// One for each segment, held while entries of it are moved; where there are very many, several
    /// segments share one.
    searches: Box<[Mutex<Search>]>,
    profile: Profile,
}

impl ConcurrentFilter {
    /// An empty filter of a shape whose buckets have at most 64 bits; `None` where its words cannot
    /// be addressed or had.
    pub(crate) fn empty(shape: Shape, profile: Profile) -> Option<Self> {
        let bytes = usize::try_from(shape.buckets()).ok()?.checked_mul(size_of::<u64>())?;
        if !buffer::can_be_had(bytes) {
            return None;
        }
        let cells = Cells::new(shape.geometry(), shape.layout, |_| 0);
        Some(Self::new(cells, 0, &Counters::default(), profile))
    }

    fn new(cells: Cells, entries: u64, counters: &Counters, profile: Profile) -> Self {
        let shards = Shards::new(entries, counters, profile.counter_limit);
        let segments = (1 << cells.geometry.segment_bits()).min(MOST_SEARCHES);
        let searches = (0..segments).map(|_| Mutex::new(Search::default())).collect();
        Self { cells, shards, searches, profile }
    }

    /// Whether `key` is in the set: never wrong if it is, wrong with probability
    /// [`false_positive_rate`](Self::false_positive_rate) if it is not. O(1): two buckets read.
    /// Lock-free.
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self.route().xxh3_only(key) {
            Some(address) => self.contains_at(address),
            None => self.contains_other(key),
        }
    }

    /// Kept out of line, so that no loop over lookups saves its registers for a call.
    #[cold]
    #[inline(never)]
    fn contains_other<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_at(self.route().address(key))
    }

    /// [`contains`](Self::contains) at the address of a key.
    #[inline(always)]
    #[expect(unsafe_code, reason = "checked, a lookup takes 25 % more instructions (fast layout)")]
    fn contains_at(&self, address: u64) -> bool {
        let location = self.cells.geometry.locate(address);
        in_form!(self.cells, packed => {
            // SAFETY: `locate` gives buckets below `geometry.buckets()`, and so many words has the
            // table.
            let both = unsafe { packed.both_unchecked(&location) };
            self.look(packed, both, location.fingerprint)
        })
    }

    fn contains_location(&self, location: &Location) -> bool {
        in_form!(self.cells, packed => self.look(packed, packed.both(location), location.fingerprint))
    }

    /// Whether a key is in its two buckets: the answer of a look while no entry of its shard
    /// arrived. A yes would need no look at the arrivals, but that look costs less than a branch on
    /// whether the key is there, and one loop without another way out less than a look again that
    /// is called.
    #[inline(always)]
    fn look<A: Atomic, P: Narrow>(
        &self,
        packed: &Packed<A, P>,
        both: [&A; 2],
        fingerprint: u64,
    ) -> bool {
        let shard = self.shards.of(fingerprint);
        loop {
            let before = shard.arrivals();
            let found = packed.contains(both, fingerprint);
            if shard.is_still(before) {
                return found;
            }
        }
    }

    /// How often `key` was inserted and not removed. Never too low; too high, by the count of
    /// another key with the same fingerprint in the same buckets, with probability
    /// [`false_positive_rate`](Self::false_positive_rate). O(log of the number of counters).
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
                return copies.saturating_add(counters.get(self.identity(location)));
            }
        }
    }

    /// The name of the counter of the entry at `location`.
    fn identity(&self, location: &Location) -> Identity {
        location.identity(self.cells.layout.fingerprint_bits())
    }
}

/// Sizes. What changes with the keys is exact while no thread is inserting or removing, and about
/// right while some are.
impl ConcurrentFilter {
    /// Keys inserted and not removed, each as often as it was inserted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shards.entries().saturating_add(self.shards.counted())
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many distinct keys the filter was built for: so many always fit, and then the
    /// false-positive rate is at most the requested one.
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

    /// Probability that an absent key is reported present, as the filter is now. A little too high
    /// where keys repeat: second copies in the buckets are taken for other keys. A
    /// [`snapshot`](Self::snapshot) says it exactly.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let bits = self.cells.layout.fraction_bits();
        let possible = shape::possible_entries(bits, self.cells.geometry.buckets());
        self.slots_in_use() as f64 / possible
    }

    /// Bytes of the buckets in memory. Counters take about 25 more each, and counts, locks and
    /// searches what the type says of its size.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.cells.size_in_bytes()
    }

    /// How many keys have a counter for copies beyond those in the buckets.
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

    #[inline(always)]
    fn route(&self) -> &Route {
        &self.profile.route
    }
}

/// One line; never the table.
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
