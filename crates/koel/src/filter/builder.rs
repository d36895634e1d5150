//! How a `CuckooFilter` is built, and what it will be.

use super::CuckooFilter;
use crate::builder::{Builder, Grows, Multiset, Settings};
use crate::error::BuildError;
use crate::image::shape::{Profile, Shape};
use crate::image::{self, HEADER_BYTES, sizing};
use crate::packing::Layout;
use crate::table::table_bytes;

impl Multiset for CuckooFilter {}

impl Grows for CuckooFilter {
    /// The fewer buckets a table begins with, the more keys have one bucket instead of two. Where
    /// five of them meet in one, growth splits the other buckets first, until it is the turn of
    /// theirs. A table that began with a hundred keys once grew by 24 % for a single key
    /// (docs/decisions/0008-growth.md).
    const LEAST: u64 = 1000;
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
    /// Bits per key of the capacity, everything included. In a filter that grows to its capacity,
    /// bits per key that it has room for at first.
    pub bits_per_key: f64,
    /// Expected false-positive rate when the filter holds `capacity` distinct keys, after growth
    /// where it grows. At most the rate given to the builder.
    pub false_positive_rate: f64,
}

impl CuckooFilter {
    /// Settings for a filter of `capacity` distinct keys that reports at most
    /// `false_positive_rate` of the absent keys as present when it is full.
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, 0)
    }

    /// A filter for `capacity` distinct keys with a false-positive rate of 0.1 %.
    ///
    /// # Panics
    /// Where the system has no memory for it, as `Vec::with_capacity` does.
    #[must_use]
    pub fn with_capacity(capacity: u64) -> Self {
        Self::builder(capacity, 0.001).build().expect("capacity overflow")
    }
}

impl Builder<CuckooFilter> {
    /// Lets the filter grow when it is full, any number of times and without the old keys: in
    /// chunks that take less than a millisecond, at a load of about 0.92, or 0.90 with
    /// [`Prefer::Fast`](crate::Prefer::Fast). A lookup always reads two buckets.
    ///
    /// * Until it grows, the filter is the one that it would be without this setting, except that
    ///   slots get a few bits more where it is built for some hundred keys or a rate above 0.4 %.
    /// * The first growth begins with a key beyond the capacity. It adds 7 bits to each slot (with
    ///   `Prefer::Fast` 8 or 12, up to the next width). It works in place: each insert widens a
    ///   16th of the table or 1024 buckets. Until all are widened, lookups take two to three times
    ///   as long; [`reserve`](CuckooFilter::reserve) does the rest at once.
    /// * With these bits the false-positive rate stays below 1.35 times the one given, over twenty
    ///   doublings and more.
    ///
    /// Where it is known how far the filter will grow, [`grow_from`](Self::grow_from) makes a
    /// smaller one: fingerprints get the bits that growth needs from the start, two or three fewer.
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
        let first = self.settings.capacity;
        self.grow_from(first)
    }

    /// Lets [`build_from`](Self::build_from) fill several segments at once, on the threads of
    /// rayon's current pool. The bytes are the same.
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn parallel(self) -> Self {
        self.with(|settings| settings.parallel = true)
    }

    /// Sizes the filter without allocating it.
    ///
    /// # Errors
    /// As [`build`](Self::build), without the one for memory.
    pub fn plan(&self) -> Result<Plan, BuildError> {
        let (settings, shape) = (&self.settings, shape(&self.settings)?);
        let capacity = settings.capacity;
        let table = table_bytes(shape.layout, shape.buckets());
        let size_in_bytes = table
            .and_then(|bytes| bytes.checked_add(HEADER_BYTES))
            .ok_or(BuildError::TooLarge { capacity })?;
        Ok(Plan {
            layout: shape.layout,
            capacity,
            buckets: shape.buckets(),
            size_in_bytes,
            bits_per_key: image::bits_per_key(size_in_bytes, first_keys(settings) as f64),
            false_positive_rate: rate_at_capacity(settings, &shape),
        })
    }

    /// Builds the empty filter.
    ///
    /// # Errors
    /// [`BuildError`] where the false-positive rate is not between 0 and 1, or is smaller than a
    /// 64-bit hash allows at this capacity, or where the system has no memory for the table.
    pub fn build(&self) -> Result<CuckooFilter, BuildError> {
        let shape = shape(&self.settings)?;
        CuckooFilter::empty(shape, profile(&self.settings)).ok_or(BuildError::NoMemory)
    }
}

fn profile(settings: &Settings) -> Profile {
    let default = if settings.grow_from.is_some() { u64::MAX } else { settings.capacity };
    settings.profile(settings.counter_limit.unwrap_or(default))
}

/// Keys that there is room for before any growth.
fn first_keys(settings: &Settings) -> u64 {
    let first = |keys: u64| keys.max(CuckooFilter::LEAST).min(settings.capacity);
    settings.grow_from.map_or(settings.capacity, first)
}

fn shape(settings: &Settings) -> Result<Shape, BuildError> {
    let Settings { capacity, rate, prefer, .. } = *settings;
    let first = first_keys(settings);
    match settings.grow_from {
        None => sizing::choose(capacity, rate, prefer),
        Some(_) if first < capacity => {
            let doublings = sizing::doublings(first, capacity);
            sizing::choose_marked(sizing::layouts(prefer), (first, doublings), rate, prefer)
        }
        Some(keys) => sizing::choose_growable(keys.max(capacity), rate, prefer),
    }
}

fn rate_at_capacity(settings: &Settings, shape: &Shape) -> f64 {
    if shape.layout.marks().is_some() {
        let doublings = sizing::doublings(first_keys(settings), settings.capacity);
        sizing::rate_when_full(shape.layout, doublings)
    } else {
        shape.rate_after(settings.capacity)
    }
}
