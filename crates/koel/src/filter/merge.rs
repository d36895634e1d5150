//! The union of two filters of one shape.
//!
//! A slot and its bucket say all that is needed to place the entry in another table of the same geometry: no key is hashed again. The work is
//! done on a copy, so that a union that does not fit changes nothing. O(buckets), and twice the memory while it runs.

use crate::CuckooFilter;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::error::{Full, MergeError};
use crate::store::Store;
use crate::table::Table;

/// What becomes of the counts of a key that is in both filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They are added: the union of two multisets of separate events.
    Sum,
    /// The larger one stays: the union of two sets that may overlap. Where a filter has grown, [`len`](CuckooFilter::len) is then known to some percent. A key of one filter
    /// that the other takes for one of its own, as it does with the probability of a false positive, is that one from then on: removing either takes the other
    /// with it.
    Max,
}

impl CuckooFilter {
    /// Adds the keys of `other` to this filter. Membership afterwards is that of the union; `other` may be a view, which is verified first.
    ///
    /// A [growable](Self::is_growable) filter grows where the union does not fit, and merges with what has grown differently. The error rate of the union is at most the sum of both: what a filter
    /// does not know of its keys, a union cannot know either.
    ///
    /// ```
    /// use koel::{CuckooFilter, Merge};
    ///
    /// let (mut monday, mut tuesday) = (CuckooFilter::with_capacity(100), CuckooFilter::with_capacity(100));
    /// monday.try_extend(["ada", "grace"])?;
    /// tuesday.try_extend(["grace", "mary"])?;
    /// monday.merge(&tuesday, Merge::Sum)?;
    /// assert_eq!((monday.count("ada"), monday.count("grace"), monday.count("mary")), (1, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MergeError`] where the filters differ in layout, hash or the size that they were built with, where the union does not fit and this filter is not
    /// [growable](Self::is_growable), or would report one absent key in ten, or where a view is not sound; then nothing has changed.
    pub fn merge<S: Store>(
        &mut self,
        other: &CuckooFilter<S>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        if other.is_unverified() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        let merged = match (&self.body, &other.body) {
            (Body::Built(ours), Body::Built(theirs)) => {
                let as_built = self.merged_as_built(ours, (other, theirs), counts);
                as_built.or_else(|full| {
                    if self.tally.grows_instead(full) {
                        self.merged_growing(other, counts)
                    } else {
                        Err(MergeError::Full(full))
                    }
                })
            }
            _ => self.merged_growing(other, counts),
        };
        *self = merged?;
        Ok(())
    }

    /// The union in a table as it was built.
    fn merged_as_built<S: Store>(
        &self,
        ours: &Table<Buffer>,
        (other, theirs): (&CuckooFilter<S>, &Table<S::Buckets>),
        counts: Merge,
    ) -> Result<Self, Full> {
        let (mut table, mut tally) = (ours.clone(), self.tally.clone());
        for place in theirs.distinct_entries() {
            let wanted = other.tally.count_place(theirs, &place);
            let missing = match counts {
                Merge::Sum => wanted,
                Merge::Max => wanted.saturating_sub(tally.count_place(&table, &place)),
            };
            if missing > 0 {
                tally.add(&mut table, &place, missing)?;
            }
        }
        Ok(Self { body: Body::Built(table), tally, body_checksum: None })
    }
}

impl<S: Store> CuckooFilter<S> {
    pub(super) fn check_compatible<T: Store>(
        &self,
        other: &CuckooFilter<T>,
    ) -> Result<(), MergeError> {
        let alike_in_size = self.body.base() == other.body.base();
        MergeError::unless_alike([
            ("layout", self.is_laid_out_like(other)),
            ("size", alike_in_size),
            ("hash", self.hasher() == other.hasher()),
            ("route", self.trusts_hashes() == other.trusts_hashes()),
        ])
    }

    /// Whether entries of both filters can be seen under one layout: the one they have, or will have.
    fn is_laid_out_like<T: Store>(&self, other: &CuckooFilter<T>) -> bool {
        if self.has_grown() == other.has_grown() {
            self.layout() == other.layout()
        } else {
            self.marked_layout().is_some() && self.marked_layout() == other.marked_layout()
        }
    }
}
