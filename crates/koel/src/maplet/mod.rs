//! The maplet: keys to small values, in little more space than the values take.
//!
//! A filter whose slots have a value above the fingerprint, over the same tables and rules
//! (docs/decisions/0007-maplet.md). To everything below, a slot is a number that moves as a whole.
//! This file has the type and its questions; `edit.rs` changes it, `many.rs` is for many keys at
//! once, `file.rs` turns it into bytes and back, `builder.rs` sizes it. `counting/` is the filter
//! whose values are counts.

mod builder;
mod edit;
mod file;
mod many;
mod values;

use core::fmt;

use crate::Key;
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::image;
use crate::packing::Layout;
use crate::state::counters::NoCounters;
use crate::state::store::{Borrowed, Owned, Store};
use crate::state::{Body, Buckets};

pub(crate) use builder::empty_body;
pub use values::Values;

/// Keys with small values, in a fingerprint and the value's own bits each: it may answer with a
/// value too many, never with one too few.
///
/// [`get`](Self::get) gives every value that was inserted for the key, and each entry of *another*
/// key with probability [`false_candidates`](Self::false_candidates) over the number of entries: so
/// `1 + e` values on average for a key with one, and `e` for an absent one, with e at most the rate
/// the maplet was built for. It is for values that can be checked where they lead: which of many
/// files has the key, or at which offset of a log it starts.
///
/// ```
/// use koel::Maplet;
///
/// // In which of 32 files is the key?
/// let mut files = Maplet::builder(10_000, 0.004, 5).build()?;
/// files.insert("ada", 3)?;
/// files.insert("grace", 17)?;
/// assert!(files.get("ada").any(|file| file == 3));
///
/// // File 3 was merged into file 20.
/// assert!(files.replace("ada", 3, 20));
/// assert!(files.remove("ada", 20));
/// assert!(!files.contains("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Values
/// Numbers of 1 to 40 bits; [`Maplet::builder`] is told how many. A slot of fingerprint and value
/// has 10 to 32 bits, an even number, or 64.
///
/// # Copies
/// A maplet is a multiset of pairs. A key may have several values, and inserting the same pair
/// again makes another entry: insert twice, remove twice. All entries of a key share two buckets,
/// so there is room for 8 of them and no more: the next one is [`FullError`](crate::FullError), and
/// nothing has changed. There are no counters as in a [`CuckooFilter`](crate::CuckooFilter).
///
/// In a large maplet some keys share both buckets, and the room for 8. Where every key has two
/// values, build for a tenth more: none of 9 million entries was refused then, one in 28 in a
/// maplet built for as many as there were. Where every key has three, one entry in nine was
/// refused, and with room for half as many again one in 16,000: keep those elsewhere, as the log
/// store does.
///
/// # What it does not do
/// It does not hold the keys. **Remove and replace only what was inserted**: the pair of an absent
/// key may be that of another key with the same fingerprint and the same value, which is rarer than
/// a false positive of a filter by the number of values in use.
///
/// # Cost
/// Every operation reads two buckets. An insert into a maplet nearly full looks at some hundred
/// more, at most 4096.
pub struct Maplet<S: Store = Owned> {
    pub(crate) body: Body<S::Buckets, NoCounters>,
}

/// A maplet read where its bytes lie, of any alignment: a memory-mapped file, a part of a message.
///
/// It answers every question that [`Maplet`] does, and changes nothing. [`MapletView::open`] makes
/// one.
pub type MapletView<'a> = Maplet<Borrowed<'a>>;

/// What a slot in use says: all that is left of a key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MapletEntry {
    /// The bucket that it lies in: one of the two of its key.
    pub bucket: u64,
    /// What stands for the key.
    pub fingerprint: u64,
    /// The value.
    pub value: u64,
}

/// Questions, of maplets and views alike.
impl<S: Store> Maplet<S> {
    /// Every value that may belong to `key`: those inserted for it, and seldom one of another key.
    /// O(1): two buckets read.
    #[inline]
    #[must_use]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Values {
        self.get_at(self.route().address(key))
    }

    /// [`get`](Self::get) at the address of a key.
    #[inline]
    fn get_at(&self, address: u64) -> Values {
        match self.body.buckets.find(address) {
            None => Values::none(),
            Some(found) => Values::new(self.body.buckets.candidates(found), self.layout()),
        }
    }

    /// Whether `key` has a value: never wrong if it has, wrong with probability
    /// [`false_candidates`](Self::false_candidates) if it has not. O(1).
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.body.buckets.contains(self.route().address(key))
    }

    /// All entries, by bucket. O(buckets).
    pub fn entries(&self) -> impl Iterator<Item = MapletEntry> {
        entries(&self.body.buckets)
    }

    /// Pairs inserted and not removed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.body.state.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.state.len == 0
    }

    /// How many entries the maplet was built for: so many of distinct keys always fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.body.state.profile.capacity
    }

    /// Slots of all buckets.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.body.slots()
    }

    /// The share of slots in use, 0 to 1.
    #[must_use]
    pub fn load_factor(&self) -> f64 {
        self.body.load_factor()
    }

    /// How many wrong values [`get`](Self::get) gives for an absent key on average, as the maplet
    /// is now; for a present key, as many besides its own.
    #[must_use]
    pub fn false_candidates(&self) -> f64 {
        self.body.false_candidates()
    }

    /// The rate the maplet was built for.
    #[must_use]
    pub fn requested_false_positive_rate(&self) -> f64 {
        self.body.state.profile.rate
    }

    /// The widths of fingerprint and value.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.body.buckets.layout()
    }

    /// The function that hashes keys.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.route().hasher()
    }

    /// Whether the maplet takes ready hashes as they are: see
    /// [`trust_hashes`](crate::Builder::trust_hashes).
    #[must_use]
    pub fn trusts_hashes(&self) -> bool {
        self.route().trusts_hashes()
    }

    #[inline(always)]
    fn route(&self) -> &Route {
        &self.body.state.profile.route
    }

    /// Bytes of the maplet, in memory and as a file.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.body.size_in_bytes()
    }

    /// Bits of [`size_in_bytes`](Self::size_in_bytes) for each entry of the
    /// [`capacity`](Self::capacity). In a maplet that [grows](crate::Builder::grow_from), the size
    /// follows the entries and the capacity says nothing of it: there, for each of the
    /// [`len`](Self::len) pairs that are in now.
    #[must_use]
    pub fn bits_per_entry(&self) -> f64 {
        let entries = if self.body.buckets.growing().is_some() {
            self.body.state.len
        } else {
            self.capacity()
        };
        image::bits_per_key(self.size_in_bytes(), entries as f64)
    }
}

/// One line; never the table.
impl<S: Store> fmt::Debug for Maplet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Maplet({} entries, capacity {}, {}, load {:.3}, {} bytes)",
            self.body.state.len,
            self.capacity(),
            self.layout(),
            self.load_factor(),
            self.size_in_bytes()
        )
    }
}

/// A copy of the bytes, at the speed of the memory.
impl Clone for Maplet {
    fn clone(&self) -> Self {
        Self { body: self.body.clone() }
    }
}

/// Equal bytes: built alike, and changed alike since.
impl PartialEq for Maplet {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

/// All entries, by bucket. O(buckets).
fn entries<B: AsRef<[u8]>>(buckets: &Buckets<B>) -> impl Iterator<Item = MapletEntry> {
    let layout = buckets.layout();
    (0..buckets.count()).flat_map(move |bucket| {
        let slots = buckets.read(bucket).0.into_iter().filter(|&slot| slot != 0);
        slots.map(move |slot| MapletEntry {
            bucket,
            fingerprint: layout.fingerprint_of(slot),
            value: layout.value_of(slot),
        })
    })
}
