//! The filter: a multiset of keys. A lookup may report an absent key as present, at a known rate.
//!
//! This file has the type and what only it answers; `face.rs` has what it shares with maplets and
//! counting filters. `edit.rs` changes a filter, `grow.rs` makes it larger, `bulk.rs` builds one
//! from all its keys (`parts.rs` sorts them), `pieces/` lets many machines build one, `compare.rs`
//! relates two, `patch/` makes one of another by what changed, and `builder.rs` sizes one.
//! The rules are in `state/`, the buckets in `table/`.

mod builder;
mod bulk;
mod compare;
mod edit;
mod grow;
mod parts;
mod patch;
mod pieces;
#[cfg(test)]
mod tests;

use crate::face::{counted_face, face, lasting_face};
use crate::host::hosted_face;
use crate::image::Kind;
use crate::image::shape::{Profile, Shape};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::mem::buffer::Buffer;
use crate::packing::SLOTS;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::side::Counters;
use crate::state::Body;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::state::State;
use crate::state::store::{Borrowed, Owned, Store};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
use crate::table::Table;

pub use builder::Plan;
pub use compare::{Comparison, Estimate, FilterEntry};
pub use patch::{PatchError, PatchSummary};
#[cfg(feature = "std")]
pub(crate) use pieces::Arrivals;
pub use pieces::{Part, Piece, PieceError, PiecePlan};

/// A cuckoo filter: a set of keys in a few bits per key, from which keys can be removed.
///
/// * [`contains`](Self::contains) is never false for a key that is in. For an absent key it is true
///   with probability [`false_positive_rate`](Self::false_positive_rate).
/// * A filter built for n keys holds n distinct keys, each any number of times.
/// * An [`insert`](Self::insert) that fails changes no byte.
///
/// ```
/// use koel::CuckooFilter;
///
/// let mut seen = CuckooFilter::builder(10_000, 0.001).build()?;
/// seen.insert("ada@example.org")?;
/// assert!(seen.contains("ada@example.org"));
/// assert!(seen.remove("ada@example.org"));
/// assert!(!seen.contains("ada@example.org"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Many keys at once
/// Methods whose names end in `_many` take a slice of keys. They do what the single method does for
/// each key, in order, and several times as fast, because they load the buckets of the coming keys
/// ahead. They write the answer for `keys[i]` to element `i` of a slice that the caller passes.
/// Where a change can fail, they stop at the first key that fails and return its error; the changes
/// before it stay. Maplets and counting filters have the same methods in the same shape. But
/// [`refute_many`](Self::refute_many) is all or none, and returns a number.
///
/// ```
/// let mut filter = koel::CuckooFilter::with_capacity(1000);
/// filter.insert_many(&["ada", "grace"])?;
/// let mut found = [false; 3];
/// filter.contains_many(&["ada", "mary", "grace"], &mut found);
/// assert_eq!(found, [true, false, true]);
/// # Ok::<(), koel::FullError>(())
/// ```
///
/// # Limits
/// A filter does not store the keys, so it cannot list them. **Remove only keys that were
/// inserted.** An absent key may have the fingerprint of another key; removing it then removes a
/// copy of that other key. No filter can do better in the same space (arXiv 2412.19249).
///
/// # Copies
/// The filter is a multiset: a key inserted twice must be removed twice. At most two copies of a
/// key take slots. A counter of 16 bytes counts the others, so that copies leave room for distinct
/// keys.
///
/// # Cost
/// Every operation reads two buckets. An insert into a nearly full filter reads some hundred more,
/// at most 8192 slots in each of two searches. Keys that somebody chose for the same buckets do not
/// change that: those without a slot go to the [stash](Self::stashed_keys).
///
/// Source: B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, Cuckoo Filter: Practically Better
/// Than Bloom (CoNEXT 2014).
pub struct CuckooFilter<S: Store = Owned> {
    pub(crate) body: Body<S::Bytes>,
}

/// A filter that reads borrowed bytes of any alignment: a memory-mapped file, a part of a message.
///
/// It answers all that a [`CuckooFilter`] does, and cannot be changed. [`FilterView::open`] makes
/// one; [`FilterView::to_owned`] makes a filter of it.
pub type FilterView<'a> = CuckooFilter<Borrowed<'a>>;

face!(CuckooFilter, FilterView, Filter);
hosted_face!(CuckooFilter, FilterView);
lasting_face!(CuckooFilter);
counted_face!(CuckooFilter);

impl CuckooFilter {
    /// An empty filter; `None` if there is no memory for it.
    pub(crate) fn empty(shape: Shape, profile: Profile) -> Option<Self> {
        Body::empty(Kind::Filter, shape, profile).map(|body| Self { body })
    }

    /// The filter with these buckets and counters. Counts the totals: O(buckets).
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn from_parts(table: Table<Buffer>, counters: Counters, profile: Profile) -> Self {
        let entries: u64 = table.iter().map(|bucket| bucket.entries().count() as u64).sum();
        let counted = counters.iter().map(|(_, count)| count);
        let len = counted.fold(entries, u64::saturating_add);
        let spares = entries - table.distinct_entries().count() as u64;
        let mut state = State::new(Kind::Filter, profile);
        state.side.counters = counters;
        (state.len, state.entries, state.spares) = (len, entries, spares);
        Self { body: Body::new(table, state) }
    }

    /// The inverse of [`from_parts`](Self::from_parts); `None` if the filter has grown, or
    /// has exact answers beside its table.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_parts(self) -> Option<(Table<Buffer>, Counters, Profile)> {
        if self.has_grown() || self.body.state.side.has_answers() {
            return None;
        }
        let (state, table) = (self.body.state, self.body.table);
        Some((table, state.side.counters, state.profile))
    }
}

impl<S: Store> CuckooFilter<S> {
    /// The number of segments, equal parts of the table as it was built. Until the filter grows,
    /// both buckets of a key are in the same segment.
    #[must_use]
    pub fn segments(&self) -> u64 {
        1 << self.body.table.base().segment_bits()
    }

    /// The number of [corrections](CuckooFilter::refute).
    #[must_use]
    pub fn corrections(&self) -> u64 {
        self.body.state.side.corrections.len()
    }

    /// The number of buckets that hold 0, 1, 2, 3 and 4 entries. O(buckets).
    #[must_use]
    pub fn occupancy(&self) -> [u64; SLOTS + 1] {
        let mut buckets = [0; SLOTS + 1];
        for bucket in 0..self.buckets() {
            buckets[self.body.table.read(bucket).entries().count()] += 1;
        }
        buckets
    }
}
