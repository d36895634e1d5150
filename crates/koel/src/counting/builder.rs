//! How a `CountingFilter` is built: as a maplet whose values are counts.

use super::CountingFilter;
use crate::builder::{Builder, Grows};
use crate::error::BuildError;
use crate::image::Kind;
use crate::maplet::{Maplet, empty_body};

/// Bits of a count in its slot by default. In a stream by Zipf's law, 1 key in 280 then has a
/// counter besides.
const COUNT_BITS: u32 = 8;

impl Grows for CountingFilter {
    const LEAST: u64 = Maplet::LEAST;
}

impl CountingFilter {
    /// Settings for a filter of `capacity` distinct keys, whose counts are wrong for at most
    /// `false_positive_rate` of all keys when it is full.
    ///
    /// ```
    /// use koel::CountingFilter;
    ///
    /// let visits = CountingFilter::builder(1_000_000, 0.001).count_bits(4).build()?;
    /// assert_eq!(visits.layout().to_string(), "plain 4x14+4");
    /// assert!(visits.bits_per_key() <= 19.0);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, COUNT_BITS)
    }
}

impl Builder<CountingFilter> {
    /// Bits of a count in its slot, 1 to 40. The default is 8. A key with a larger count has a
    /// counter besides, of about 30 bytes.
    #[must_use]
    pub fn count_bits(self, bits: u32) -> Self {
        self.with(|settings| settings.value_bits = bits)
    }

    /// Builds the empty filter. It has the narrowest fingerprint that keeps the rate and makes a
    /// slot of an even number of bits.
    ///
    /// ```
    /// let mut visits = koel::CountingFilter::builder(1_000_000, 0.001).grow_from(1000).build()?;
    /// for visit in 0..50_000_u64 {
    ///     visits.insert(&(visit % 20_000))?;
    /// }
    /// assert!((0..20_000_u64).all(|visitor| visits.count(&visitor) >= 2));
    /// assert!(visits.load_factor() > 0.87);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError`] where the false-positive rate is not between 0 and 1, or is smaller than a
    /// 64-bit hash allows at this capacity, where counts would have no or more than 40 bits, or
    /// where the system has no memory for the table.
    pub fn build(&self) -> Result<CountingFilter, BuildError> {
        let body = empty_body(&self.settings, Kind::Counting, u64::MAX)?;
        Ok(CountingFilter { body })
    }
}
