//! The union of two counting filters of one shape.
//!
//! The work is done on a copy (state/merge.rs), so that a union that does not fit changes nothing.

use super::CountingFilter;
use crate::Merge;
use crate::error::MergeError;
use crate::state::store::Store;

impl CountingFilter {
    /// Adds the keys of `other` to this filter, each with its count: the sum of both, or the larger
    /// one. `other` may be a view, which is verified first. A filter that
    /// [grows](crate::Builder::grow_from) grows as need be, and merges with what has grown
    /// differently. The error rate of the union is at most the sum of both. O(buckets), and twice
    /// the memory while it runs.
    ///
    /// ```
    /// use koel::{CountingFilter, Merge};
    ///
    /// let builder = CountingFilter::builder(1000, 0.001);
    /// let (mut monday, mut tuesday) = (builder.build()?, builder.build()?);
    /// monday.add("ada", 3)?;
    /// tuesday.add("ada", 4)?;
    /// tuesday.insert("mary")?;
    /// monday.merge(&tuesday, Merge::Sum)?;
    /// assert_eq!((monday.count("ada"), monday.count("mary")), (7, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MergeError`] where the filters differ in layout, hash or the size that they were built
    /// with, where the union does not fit, or where a view is not sound; then nothing has changed.
    pub fn merge<S: Store>(
        &mut self,
        other: &CountingFilter<S>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        if other.body.is_unverified() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        let mut union = self.body.clone();
        union.merge_entries(&other.body, counts)?;
        self.body = union;
        Ok(())
    }

    fn check_compatible<S: Store>(&self, other: &CountingFilter<S>) -> Result<(), MergeError> {
        MergeError::unless_alike([
            ("layout", self.layout() == other.layout()),
            ("size", self.body.buckets.base() == other.body.buckets.base()),
            ("hash", self.hasher() == other.hasher()),
            ("route", self.trusts_hashes() == other.trusts_hashes()),
        ])
    }
}
