//! The union of two filters of one shape.
//!
//! The work is done on a copy (state/merge.rs), so that a union that does not fit changes nothing.
//! O(buckets), and twice the memory while it runs.

use crate::error::MergeError;
use crate::state::store::Store;
use crate::{CuckooFilter, Merge};

impl CuckooFilter {
    /// Adds the keys of `other` to this filter. Membership afterwards is that of the union; `other`
    /// may be a view, which is verified first.
    ///
    /// A [growable](Self::is_growable) filter grows where the union does not fit, and merges with
    /// what has grown differently. The error rate of the union is at most the sum of both: what a
    /// filter does not know of its keys, a union cannot know either.
    ///
    /// ```
    /// use koel::{CuckooFilter, Merge};
    ///
    /// let mut monday = CuckooFilter::with_capacity(100);
    /// let mut tuesday = CuckooFilter::with_capacity(100);
    /// monday.try_extend(["ada", "grace"])?;
    /// tuesday.try_extend(["grace", "mary"])?;
    /// monday.merge(&tuesday, Merge::Sum)?;
    /// assert_eq!((monday.count("ada"), monday.count("grace"), monday.count("mary")), (1, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MergeError`] where the filters differ in layout, hash or the size that they were built
    /// with, where the union does not fit and this filter is not [growable](Self::is_growable), or
    /// would report one absent key in ten, or where a view is not sound; then nothing has changed.
    pub fn merge<S: Store>(
        &mut self,
        other: &CuckooFilter<S>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        if other.body.is_unverified() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        self.body = self.body.merged(&other.body, counts)?;
        Ok(())
    }
}

impl<S: Store> CuckooFilter<S> {
    pub(super) fn check_compatible<T: Store>(
        &self,
        other: &CuckooFilter<T>,
    ) -> Result<(), MergeError> {
        let alike_in_size = self.body.buckets.base() == other.body.buckets.base();
        MergeError::unless_alike([
            ("layout", self.is_laid_out_like(other)),
            ("size", alike_in_size),
            ("hash", self.hasher() == other.hasher()),
            ("route", self.trusts_hashes() == other.trusts_hashes()),
        ])
    }

    /// Whether entries of both filters can be seen under one layout: the one they have, or will
    /// have.
    fn is_laid_out_like<T: Store>(&self, other: &CuckooFilter<T>) -> bool {
        if self.has_grown() == other.has_grown() {
            self.layout() == other.layout()
        } else {
            self.body.marked_layout().is_some()
                && self.body.marked_layout() == other.body.marked_layout()
        }
    }
}
