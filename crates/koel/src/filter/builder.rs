//! How a filter is asked for: capacity and error rate, and what to prefer.

use crate::CuckooFilter;
use crate::address::hash::KeyHasher;
use crate::address::route::Route;
use crate::error::BuildError;
use crate::image::shape::{Prefer, Profile, Shape};
use crate::image::sizing;
use crate::image::{self, HEADER_BYTES};
use crate::packing::Layout;
use crate::table::table_bytes;

/// A filter that starts small has room for at least so many keys. The fewer buckets a table begins
/// with, the more keys have one bucket instead of two; where five of them meet in it, the table is
/// split until that bucket's turn comes. One that began with a hundred keys once grew by 24 % for a
/// single key (docs/decisions/0008-growth.md).
const FIRST_KEYS: u64 = 1000;

/// Settings of a filter to be built. Made by [`CuckooFilter::builder`].
///
/// ```
/// use koel::{CuckooFilter, Prefer};
///
/// let filter = CuckooFilter::builder(1_000_000, 0.001).prefer(Prefer::Small).seed(42).build()?;
/// assert_eq!(filter.capacity(), 1_000_000);
/// assert!(filter.bits_per_key() <= 12.4);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    capacity: u64,
    rate: f64,
    prefer: Prefer,
    route: Route,
    counter_limit: Option<u64>,
    /// The keys that a filter which grows has room for at first.
    grow_from: Option<u64>,
    #[cfg(feature = "rayon")]
    parallel: bool,
}

/// What [`Builder::build`] would build.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The packing of the buckets.
    pub layout: Layout,
    /// Distinct keys that will fit.
    pub capacity: u64,
    /// Buckets of four slots.
    pub buckets: u64,
    /// Bytes of the filter, in memory and as a file, as long as no key needs a counter.
    pub size_in_bytes: usize,
    /// Bits for each key of the capacity, everything included; of a filter that grows to it, for
    /// each key that there is room for at first.
    pub bits_per_key: f64,
    /// Expected false-positive rate when the filter holds `capacity` distinct keys, grown to them
    /// where it grows: at most the one asked for.
    pub false_positive_rate: f64,
}

impl CuckooFilter {
    /// Settings for a filter of `capacity` distinct keys that errs for at most
    /// `false_positive_rate` of the absent keys when it is full.
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder {
        Builder::new(capacity, false_positive_rate)
    }

    /// A filter for `capacity` distinct keys with a false-positive rate of 0.1 %.
    ///
    /// # Panics
    /// Where the memory cannot be had, as `Vec::with_capacity` does.
    #[must_use]
    pub fn with_capacity(capacity: u64) -> Self {
        Self::builder(capacity, 0.001).build().expect("capacity overflow")
    }
}

impl Builder {
    pub(crate) fn new(capacity: u64, rate: f64) -> Self {
        Self {
            capacity,
            rate,
            prefer: Prefer::default(),
            route: Route::default(),
            counter_limit: None,
            grow_from: None,
            #[cfg(feature = "rayon")]
            parallel: false,
        }
    }

    /// What to prefer; [`Prefer::Small`] unless set.
    #[must_use]
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.prefer = prefer;
        self
    }

    /// The seed of the hash function XXH3-64, [`KeyHasher::DEFAULT_SEED`] unless set. Use a seed
    /// that nothing else uses for the same keys. Only filters with equal seeds can be merged.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.route = self.route.with_hasher(KeyHasher::Xxh3 { seed });
        self
    }

    /// Hashes with SipHash-1-3 under this secret: for keys that an adversary may choose. The key is
    /// stored in the filter's bytes.
    #[must_use]
    pub fn sip_key(mut self, key: [u8; 16]) -> Self {
        self.route = self.route.with_hasher(KeyHasher::Sip13 { key });
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
        self.route = self.route.trusting();
        self
    }

    /// At most so many keys may have a counter for the copies beyond those in the buckets, 16 bytes
    /// each in a file. Unless set, as many as the capacity, and any number in a filter that grows,
    /// so that every key may come any number of times. With fewer, repeated keys can fill the
    /// filter before the capacity of distinct keys is in. Growth may pass the limit: an entry of
    /// which no bits are left is split into two, each with the counter.
    #[must_use]
    pub fn counter_limit(mut self, limit: u64) -> Self {
        self.counter_limit = Some(limit);
        self
    }

    /// Lets the filter grow when it is full, without the keys and as often as need be: in chunks
    /// that take less than a millisecond, at a load near 0.92, or 0.90 with [`Prefer::Fast`],
    /// always with two buckets to read. Until then it is the filter that it would be otherwise, but
    /// for a few bits more where it is built for some hundred keys or an error rate above 0.4 %.
    /// The first growth, which begins with a key beyond the capacity, adds 7 bits to each slot
    /// (with [`Prefer::Fast`] 8 or 12, up to the next of its widths): where the table lies, a 16th
    /// of it or 1024 buckets with each insert. Until that is done, or
    /// [`reserve`](crate::CuckooFilter::reserve) does the rest, lookups take two to three times as
    /// long. With these bits the error rate stays below 1.35 times the one asked for, over twenty
    /// doublings and more.
    ///
    /// Where it is known how far the filter will grow, [`grow_from`](Self::grow_from) makes a
    /// smaller one.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::builder(1000, 0.001).growable().build()?;
    /// filter.try_extend(0_u64..100_000)?;
    /// assert!((0_u64..100_000).all(|key| filter.contains(&key)));
    /// assert!(filter.load_factor() > 0.85 && filter.false_positive_rate() < 0.00135);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn growable(self) -> Self {
        let first = self.capacity;
        self.grow_from(first)
    }

    /// Starts with room for `keys` keys, 1000 at least, and grows to the capacity, and beyond if
    /// need be, as [`growable`](Self::growable) says. The error rate is kept up to the capacity:
    /// fingerprints have from the start the bits that so many doublings need, two or three less
    /// than if they got them later.
    ///
    /// ```
    /// // From a thousand keys to any number up to a million, at an error rate of at most 0.1 %.
    /// let mut filter = koel::CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build()?;
    /// filter.try_extend(0_u64..100_000)?;
    /// assert!(filter.size_in_bytes() * 8 < 100_000 * 18);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grow_from(mut self, keys: u64) -> Self {
        self.grow_from = Some(keys);
        self
    }

    /// Lets [`build_from`](Self::build_from) work on several segments at once, on the threads of
    /// rayon's current pool. The bytes are the same.
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    #[cfg(feature = "rayon")]
    pub(crate) fn is_parallel(&self) -> bool {
        self.parallel
    }

    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Sizes the filter without allocating it.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn plan(&self) -> Result<Plan, BuildError> {
        let shape = self.shape()?;
        let body = table_bytes(shape.layout, shape.buckets());
        let size_in_bytes = body
            .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
            .ok_or(BuildError::TooLarge { capacity: self.capacity })?;
        Ok(Plan {
            layout: shape.layout,
            capacity: self.capacity,
            buckets: shape.buckets(),
            size_in_bytes,
            bits_per_key: image::bits_per_key(size_in_bytes, self.first_keys() as f64),
            false_positive_rate: self.rate_at_capacity(&shape),
        })
    }

    /// Builds the empty filter.
    ///
    /// # Errors
    /// [`BuildError`] where the error rate is not between 0 and 1, or is smaller than a 64-bit hash
    /// allows at this capacity, or where the system has no memory for the table.
    pub fn build(&self) -> Result<CuckooFilter, BuildError> {
        let shape = self.shape()?;
        let filter = CuckooFilter::empty(shape, self.profile());
        filter.ok_or(BuildError::TooLarge { capacity: self.capacity })
    }

    /// Builds the empty filter for many threads. Its fingerprints have 9 or 17 bits with
    /// [`Prefer::Small`], 8 or 16 with [`Prefer::Fast`], so that a bucket fills an atomic word: the
    /// error rate may be far below the one asked for.
    ///
    /// It does not grow, and has room for the whole capacity from the start. What
    /// [`growable`](Self::growable) or [`grow_from`](Self::grow_from) asked for holds for the
    /// filter that [`into_filter`](crate::ConcurrentFilter::into_filter) or
    /// [`snapshot`](crate::ConcurrentFilter::snapshot) gives: that one grows when it is full.
    ///
    /// # Errors
    /// [`BuildError`] as of [`build`](Self::build), and at error rates below about 0.006 % (small)
    /// and 0.012 % (fast).
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub fn build_concurrent(&self) -> Result<crate::ConcurrentFilter, BuildError> {
        let shape = sizing::choose_atomic(self.capacity, self.rate, self.prefer)?;
        let filter = crate::ConcurrentFilter::empty(shape, self.profile());
        filter.ok_or(BuildError::TooLarge { capacity: self.capacity })
    }

    fn rate_at_capacity(&self, shape: &Shape) -> f64 {
        if shape.layout.marks().is_some() {
            let doublings = sizing::doublings(self.first_keys(), self.capacity);
            sizing::rate_when_full(shape.layout, doublings)
        } else {
            shape.rate_after(self.capacity)
        }
    }

    /// How many keys there is room for before any growth.
    fn first_keys(&self) -> u64 {
        self.grow_from.map_or(self.capacity, |first| first.max(FIRST_KEYS).min(self.capacity))
    }

    fn profile(&self) -> Profile {
        Profile {
            route: self.route,
            capacity: self.capacity,
            rate: self.rate,
            counter_limit: self.counter_limit.unwrap_or(if self.grow_from.is_some() {
                u64::MAX
            } else {
                self.capacity
            }),
            growable: self.grow_from.is_some(),
        }
    }

    fn shape(&self) -> Result<Shape, BuildError> {
        let (capacity, rate, prefer) = (self.capacity, self.rate, self.prefer);
        let Some(asked) = self.grow_from else {
            return sizing::choose(capacity, rate, prefer);
        };
        let first = self.first_keys();
        if first < capacity {
            let doublings = sizing::doublings(first, capacity);
            sizing::choose_marked((first, doublings), rate, prefer)
        } else {
            sizing::choose_growable(asked.max(capacity), rate, prefer)
        }
    }
}
