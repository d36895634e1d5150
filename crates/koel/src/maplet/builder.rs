//! How a maplet is asked for: capacity, error rate and the width of its values.

use crate::Maplet;
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::error::BuildError;
use crate::image::shape::Profile;
use crate::image::sizing;

/// A maplet that grows starts with room for so many entries at least. Keys whose two buckets are
/// one can go nowhere else, and the fewer buckets a table began with, the more of them share one:
/// docs/decisions/0008-growth.md, Keys that find no room.
const FIRST_ENTRIES: u64 = 8192;

/// Settings of a maplet to be built. Made by [`Maplet::builder`].
///
/// ```
/// use koel::Maplet;
///
/// let runs = Maplet::builder(1_000_000, 0.004, 5).build()?;
/// assert_eq!(runs.layout().to_string(), "plain 4x11+5");
/// assert!(runs.bits_per_entry() <= 17.0);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MapletBuilder {
    capacity: u64,
    rate: f64,
    pub(crate) value_bits: u32,
    route: Route,
    /// The entries that a maplet which grows has room for at first.
    grow_from: Option<u64>,
}

impl MapletBuilder {
    pub(super) fn new(capacity: u64, rate: f64, value_bits: u32) -> Self {
        Self { capacity, rate, value_bits, route: Route::default(), grow_from: None }
    }

    /// The seed of the hash function XXH3-64, [`KeyHasher::DEFAULT_SEED`] unless set. Use a seed
    /// that nothing else uses for the same keys.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.route = self.route.with_hasher(KeyHasher::Xxh3 { seed });
        self
    }

    /// Hashes with SipHash-1-3 under this secret: for keys that an adversary may choose. The key is
    /// stored in the maplet's bytes.
    #[must_use]
    pub fn sip_key(mut self, key: [u8; 16]) -> Self {
        self.route = self.route.with_hasher(KeyHasher::Sip13 { key });
        self
    }

    /// Takes [ready hashes](crate::KeyHash) as they are, instead of mixing them.
    ///
    /// The caller vouches that all 64 bits of a hash are uniform, and that the hash was used for
    /// nothing else, such as dividing keys among filters. Otherwise the maplet may refuse keys
    /// before its capacity, and its false-positive rate rises. A ready hash then costs a few
    /// instructions less, and any other key a few more. The maplet's bytes record the choice.
    #[must_use]
    pub fn trust_hashes(mut self) -> Self {
        self.route = self.route.trusting();
        self
    }

    /// Starts with room for about `entries` entries, 8192 at least, and grows to the capacity and
    /// beyond, without the keys: in chunks that take less than a millisecond, at a load near 0.90,
    /// always with two buckets to read. The rate is kept up to the capacity; after that it rises
    /// with each doubling by as much as with those before, about 0.7 of what it was when the maplet
    /// was first full: the eleventh doubling makes it an eleventh larger.
    ///
    /// ```
    /// let builder = koel::Maplet::builder(1_000_000_000, 0.000_01, 38);
    /// let mut places = builder.grow_from(1000).build()?;
    /// for number in 0..20_000_u64 {
    ///     places.insert(&number, 8 * number)?;
    /// }
    /// assert!((0..20_000_u64).all(|number| places.get(&number).any(|place| place == 8 * number)));
    /// assert!(places.load_factor() > 0.87);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grow_from(mut self, entries: u64) -> Self {
        self.grow_from = Some(entries);
        self
    }

    /// Builds the empty maplet: the narrowest fingerprint that keeps the rate and makes a slot of
    /// an even number of bits, up to 32; beyond that a slot has 64 bits, and the fingerprint up to
    /// 32 of those that the value leaves.
    ///
    /// # Errors
    /// [`BuildError`] where the error rate is not between 0 and 1, or is smaller than a 64-bit hash
    /// allows at this capacity, where values are of no or of more than 40 bits, or where the system
    /// has no memory for the table.
    pub fn build(&self) -> Result<Maplet, BuildError> {
        let capacity = self.capacity;
        let shape = match self.grow_from {
            None => sizing::choose_maplet(capacity, self.rate, self.value_bits)?,
            Some(first) => {
                let first = first.max(FIRST_ENTRIES);
                let doublings = sizing::doublings(first, capacity);
                sizing::choose_growing_maplet((first, doublings), self.rate, self.value_bits)?
            }
        };
        let profile = Profile {
            route: self.route,
            capacity,
            rate: self.rate,
            counter_limit: 0,
            growable: self.grow_from.is_some(),
        };
        Maplet::empty(shape, profile).ok_or(BuildError::TooLarge { capacity })
    }
}
