//! How a counting filter is asked for: capacity, error rate and the width of its counts.

use super::CountingFilter;
use crate::MapletBuilder;
use crate::error::BuildError;
use crate::image::Kind;
use crate::image::shape::Profile;
use crate::maplet::Maplet;
use crate::state::counters::Counters;
use crate::state::{Body, State};

/// Bits of a count in its slot, unless others are asked for: in a stream by Zipf's law 1 key in 280
/// then has a counter besides.
const COUNT_BITS: u32 = 8;

/// Settings of a counting filter to be built. Made by [`CountingFilter::builder`].
///
/// ```
/// use koel::CountingFilter;
///
/// let visits = CountingFilter::builder(1_000_000, 0.001).count_bits(4).build()?;
/// assert_eq!(visits.layout().to_string(), "plain 4x14+4");
/// assert!(visits.bits_per_key() <= 19.0);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CountingBuilder {
    maplet: MapletBuilder,
}

impl CountingBuilder {
    pub(super) fn new(capacity: u64, rate: f64) -> Self {
        Self { maplet: Maplet::builder(capacity, rate, COUNT_BITS) }
    }

    /// Bits of a count in its slot, 1 to 40; 8 unless set. Keys that come more often have a counter
    /// of some 25 bytes besides.
    #[must_use]
    pub fn count_bits(mut self, bits: u32) -> Self {
        self.maplet.value_bits = bits;
        self
    }

    /// The seed of the hash function XXH3-64,
    /// [`KeyHasher::DEFAULT_SEED`](crate::KeyHasher::DEFAULT_SEED) unless set. Use a seed that
    /// nothing else uses for the same keys. Only filters with equal seeds can be merged.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.maplet = self.maplet.seed(seed);
        self
    }

    /// Hashes with SipHash-1-3 under this secret: for keys that an adversary may choose. The key is
    /// stored in the filter's bytes.
    #[must_use]
    pub fn sip_key(mut self, key: [u8; 16]) -> Self {
        self.maplet = self.maplet.sip_key(key);
        self
    }

    /// Takes [ready hashes](crate::KeyHash) as they are, instead of mixing them.
    ///
    /// The caller vouches that all 64 bits of a hash are uniform, and that the hash was used for
    /// nothing else, such as dividing keys among filters. Otherwise the filter may refuse keys
    /// before its capacity, and its false-positive rate rises. A ready hash then costs a few
    /// instructions less, and any other key a few more. The filter's bytes record the choice.
    #[must_use]
    pub fn trust_hashes(mut self) -> Self {
        self.maplet = self.maplet.trust_hashes();
        self
    }

    /// Starts with room for about `keys` distinct keys, 8192 at least, and grows to the capacity
    /// and beyond, without the keys: in chunks that take less than a millisecond, at a load near
    /// 0.90, always with two buckets to read. The error rate is kept up to the capacity; after that
    /// it rises with each doubling by as much as with those before, about 0.7 of what it was when
    /// the filter was first full: the eleventh doubling makes it an eleventh larger.
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
    #[must_use]
    pub fn grow_from(mut self, keys: u64) -> Self {
        self.maplet = self.maplet.grow_from(keys);
        self
    }

    /// Builds the empty filter: the narrowest fingerprint that keeps the rate and makes a slot of
    /// an even number of bits.
    ///
    /// # Errors
    /// [`BuildError`] where the error rate is not between 0 and 1, or is smaller than a 64-bit hash
    /// allows at this capacity, where counts are of no or of more than 40 bits, or where the system
    /// has no memory for the table.
    pub fn build(&self) -> Result<CountingFilter, BuildError> {
        let Body { buckets, state, .. } = self.maplet.build()?.body;
        let profile = Profile { counter_limit: u64::MAX, ..state.profile };
        let state = State::new(Kind::Counting, profile, Counters::default());
        Ok(CountingFilter { body: Body::new(buckets, state) })
    }
}
