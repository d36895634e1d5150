//! How a `ConcurrentFilter` is built.

use super::ConcurrentFilter;
use crate::CuckooFilter;
use crate::builder::{Builder, Multiset, Settings};
use crate::error::BuildError;
use crate::image::sizing;

impl Multiset for ConcurrentFilter {}

impl ConcurrentFilter {
    /// Settings for a filter of `capacity` distinct keys that reports at most
    /// `false_positive_rate` of the absent keys as present when it is full. It does not grow.
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, 0)
    }
}

impl Builder<ConcurrentFilter> {
    /// Builds the empty filter. Its fingerprints have 9 or 17 bits with
    /// [`Prefer::Small`](crate::Prefer::Small), 8 or 16 with [`Prefer::Fast`](crate::Prefer::Fast),
    /// so that a bucket fills an atomic word. So the false-positive rate may be far below the one
    /// given.
    ///
    /// # Errors
    /// [`BuildError`] where the false-positive rate is not between 0 and 1, or is below the
    /// smallest one that an atomic word allows: about 0.006 % (small) or 0.012 % (fast). The error
    /// says that rate. Also where the system has no memory for the table.
    pub fn build(&self) -> Result<ConcurrentFilter, BuildError> {
        let Settings { capacity, rate, prefer, counter_limit, .. } = self.settings;
        let shape =
            sizing::with_true_limit(capacity, |keys| sizing::choose_atomic(keys, rate, prefer))?;
        let profile = self.settings.profile(counter_limit.unwrap_or(capacity));
        let filter = CuckooFilter::empty(shape, profile);
        filter.and_then(|filter| filter.try_into().ok()).ok_or(BuildError::NoMemory)
    }
}
