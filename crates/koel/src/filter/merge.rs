//! The union of two filters of one shape.
//!
//! A slot and its bucket say all that is needed to place the entry in another table of the same geometry: no key is hashed again. The work is
//! done on a copy, so that a union that does not fit changes nothing. O(buckets), and twice the memory while it runs.

use crate::CuckooFilter;
use crate::error::MergeError;
use crate::store::Store;

/// What becomes of the counts of a key that is in both filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// They are added: the union of two multisets of separate events.
    Sum,
    /// The larger one stays: the union of two sets that may overlap.
    Max,
}

impl CuckooFilter {
    /// Adds the keys of `other` to this filter. Membership afterwards is that of the union; `other` may be a view, which is verified first.
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
    /// [`MergeError`] where the filters differ in layout, size or hash, where the union does not fit, or where a view is not sound; then
    /// nothing has changed.
    pub fn merge<S: Store>(
        &mut self,
        other: &CuckooFilter<S>,
        counts: Merge,
    ) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        if other.is_unverified() {
            other.verify().map_err(MergeError::Unsound)?;
        }
        let mut union = self.clone();
        for place in other.table.distinct_entries() {
            let theirs = other.count_place(&place);
            let missing = match counts {
                Merge::Sum => theirs,
                Merge::Max => theirs.saturating_sub(union.count_place(&place)),
            };
            if missing > 0 {
                union.add(&place, missing)?;
            }
        }
        *self = union;
        Ok(())
    }
}

impl<S: Store> CuckooFilter<S> {
    pub(super) fn check_compatible<T: Store>(
        &self,
        other: &CuckooFilter<T>,
    ) -> Result<(), MergeError> {
        let field = if self.layout() != other.layout() {
            "layout"
        } else if self.table.geometry() != other.table.geometry() {
            "size"
        } else if self.hasher() != other.hasher() {
            "hash"
        } else {
            return Ok(());
        };
        Err(MergeError::Incompatible { field })
    }
}
