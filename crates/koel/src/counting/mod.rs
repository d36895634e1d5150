//! The counting filter: how often each key was inserted, in little more space than a filter takes.
//!
//! A maplet whose values are counts. A key has one entry, and the value beside its fingerprint is
//! its count. The largest value means: this many, and what the counter of the entry holds besides
//! (`side.rs`). Invariant: an entry has a counter only if its value is the largest.
//!
//! Compared with the copies of a [`CuckooFilter`](crate::CuckooFilter), it takes a sixth of the
//! memory and half of the time where most keys repeat, and more memory where they do not
//! (docs/decisions/0007-maplet.md has the figures). This file has the type; `face.rs` has what it
//! shares with filters and maplets. `edit.rs` changes a counting filter, and `builder.rs` sizes
//! one. The rules are in `state/count.rs`.

mod builder;
mod edit;

use crate::face::{counted_face, face, lasting_face};
use crate::state::Body;
use crate::state::store::{Borrowed, Owned, Store};

/// Counts keys, for streams in which some keys come very often.
///
/// [`count`](Self::count) is never too low. It is too high, by the count of another key with the
/// same fingerprint and bucket, with at most the probability that the filter was built for. A
/// filter built for n keys holds n distinct keys, each any number of times, up to 2^64 - 1 in all.
///
/// ```
/// use koel::CountingFilter;
///
/// let mut visits = CountingFilter::builder(10_000, 0.001).build()?;
/// assert_eq!(visits.insert("ada")?, 1);
/// assert_eq!(visits.insert("ada")?, 2);
/// assert_eq!(visits.add("grace", 1_000_000)?, 1_000_000);
/// assert!(visits.remove("ada"));
/// assert_eq!((visits.count("ada"), visits.count("mary")), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Or a `CuckooFilter`?
/// A [`CuckooFilter`](crate::CuckooFilter) counts too: the second copy of a key takes a slot, and
/// from the third on the key has a counter of some 30 bytes. It is smaller where fewer than one key
/// in 18 comes a third time. Where more do, a `CountingFilter` is smaller, and its inserts are
/// faster.
///
/// # Limits
/// A counting filter does not store the keys, so it cannot list them. **Remove only keys that were
/// inserted.** An absent key may have the fingerprint of another key; removing it then lowers the
/// count of that other key.
///
/// It has no `refute`: a correction says that a key is absent, and this type is asked how often a
/// key came. A [`CuckooFilter`](crate::CuckooFilter::refute) has it.
///
/// # Cost
/// Every operation reads two buckets. A count too large for its slot has a counter, in O(log
/// [`distinct_counters`](Self::distinct_counters)). The first insert of a key into a nearly full
/// filter reads some hundred more slots: at most 8192, or 16384 in one that grows and has counters.
pub struct CountingFilter<S: Store = Owned> {
    pub(crate) body: Body<S::Bytes>,
}

/// A counting filter that reads borrowed bytes of any alignment: a memory-mapped file, a part of a
/// message.
///
/// It answers all that a [`CountingFilter`] does, and cannot be changed. [`CountingView::open`]
/// makes one; [`CountingView::to_owned`] makes a counting filter of it.
pub type CountingView<'a> = CountingFilter<Borrowed<'a>>;

face!(CountingFilter, CountingView, Counting);
lasting_face!(CountingFilter);
counted_face!(CountingFilter);

impl<S: Store> CountingFilter<S> {
    /// The counts of all keys, in no particular order. Keys with the same fingerprint and bucket
    /// have one count together. O(buckets).
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        let in_table = (0..self.buckets()).flat_map(move |bucket| {
            let slots = self.body.table.read(bucket).0.into_iter().filter(|&slot| slot != 0);
            slots.map(move |slot| self.body.count_in(bucket, slot))
        });
        in_table.chain(self.body.state.side.stashed_keys().map(|(_, count)| count))
    }
}
