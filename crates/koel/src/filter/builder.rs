//! How a `CuckooFilter` is built, and what it will be.

use alloc::vec::Vec;

use super::CuckooFilter;
use crate::address::hash::KeyHasher;
use crate::address::key::{Key, KeyHash};
use crate::builder::{Builder, Grows, Multiset, Settings};
use crate::error::BuildError;
use crate::image::shape::{Profile, Shape};
use crate::image::{self, HEADER_BYTES, sizing};
use crate::packing::Layout;
use crate::table::{buckets_for, table_bytes};

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
    /// Expected false-positive rate with as many distinct keys as the builder's capacity, also in
    /// a plan of a filter that grows further. At most the rate given to the builder.
    pub false_positive_rate: f64,
    /// About how many distinct keys the filter can grow to, if it is growable or is
    /// [made growable](CuckooFilter::make_growable). `None` if it can never grow.
    pub growth_limit: Option<u64>,
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

/// A filter of the keys, built for as many as there are, with a false-positive rate of 0.1 %. Takes
/// 8 bytes a key until it is built, and 16 if it has more than 2 MiB.
///
/// ```
/// let filter: koel::CuckooFilter = ["ada", "grace"].into_iter().collect();
/// assert!(filter.contains("grace") && filter.len() == 2);
/// ```
///
/// # Panics
/// Where the system has no memory for it, as `Vec::from_iter` does.
impl<K: Key> FromIterator<K> for CuckooFilter {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hasher = KeyHasher::default();
        let hashes: Vec<KeyHash> = keys.into_iter().map(|key| hasher.hash(&key)).collect();
        let builder = Self::builder(hashes.len().max(1) as u64, 0.001);
        builder.build_from(&hashes).expect("capacity overflow")
    }
}

impl Builder<CuckooFilter> {
    /// Lets the filter grow when it is full, any number of times and without the old keys: in small
    /// chunks, at a load of about 0.86, or 0.79 with [`Prefer::Fast`](crate::Prefer::Fast). A
    /// lookup always reads two buckets.
    ///
    /// * It costs nothing until the filter is full. Then a key takes more bits, and inserts and
    ///   lookups take longer, than in a filter that is built for as many keys: by how much is in
    ///   docs/CHOOSING.md of the repository.
    /// * Until it grows, the filter is the one that it would be without this setting, except that
    ///   slots get a few bits more where it is built for some hundred keys or a rate above 0.4 %.
    /// * The first growth begins with a key beyond the capacity. It adds 7 bits to each slot (with
    ///   `Prefer::Fast` 8 or 12, up to the next width). It works in place: each insert widens a
    ///   16th of the table or 1024 buckets. Until all are widened, lookups take two to three times
    ///   as long; [`reserve`](CuckooFilter::reserve) does the rest at once.
    /// * With these bits the false-positive rate stays below 1.35 times the one given, over twenty
    ///   doublings and more.
    /// * A removed key is found again with that probability, as any absent key, however early it
    ///   came.
    /// * At rates from 0.4 % on, all filters of a capacity are the same: a fingerprint has 5 bits
    ///   that growth can take, and then 6 more. With fewer, many old entries would have none left,
    ///   and such an entry takes a slot in both halves of each bucket that is split.
    ///
    /// Where it is known how far the filter will grow, [`grow_from`](Self::grow_from) makes a
    /// smaller one: fingerprints get the bits that growth needs from the start, some fewer. The
    /// example shows a filter that grows from a thousand keys to a million at 1 %.
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::builder(1000, 0.001).growable().build()?;
    /// filter.try_extend(0_u64..100_000)?;
    /// assert!((0_u64..100_000).all(|key| filter.contains(&key)));
    /// assert!(filter.load_factor() > 0.85 && filter.false_positive_rate() < 0.00135);
    ///
    /// let (anywhere, to_a_million) = (
    ///     koel::CuckooFilter::builder(1000, 0.01).growable(),
    ///     koel::CuckooFilter::builder(1_000_000, 0.01).grow_from(1000),
    /// );
    /// let [anywhere, to_a_million] =
    ///     [anywhere, to_a_million].map(|it| it.plan_grown(1_000_000).map(|it| it.bits_per_key));
    /// assert!((19.9..20.0).contains(&anywhere?) && (15.2..15.3).contains(&to_a_million?));
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
        let shape = shape(&self.settings)?;
        let first = first_keys(&self.settings);
        Ok(plan(&self.settings, &shape, (shape.layout, shape.buckets(), first)))
    }

    /// Sizes the filter as it is once it has grown to a capacity of `keys` distinct keys, with one
    /// chunk of buckets more: the last search may have failed, which splits one ahead of the load.
    ///
    /// ```
    /// let builder = koel::CuckooFilter::builder(1_000_000_000, 0.001).grow_from(1000);
    /// assert!(builder.plan_grown(1_000_000)?.bits_per_key < 21.0);
    /// // Buckets have numbers of 32 bits.
    /// assert!(builder.plan_grown(100_000_000_000).is_err());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`plan`](Self::plan), and [`BuildError::TooLarge`] if it cannot grow to so many keys.
    pub fn plan_grown(&self, keys: u64) -> Result<Plan, BuildError> {
        let first = first_keys(&self.settings);
        let shape = shape(&self.settings)?.that_grows_to(keys.max(first))?;
        let entries = keys.saturating_add(keys / 64).min(shape.growth_limit().unwrap_or(0));
        let grown = shape
            .grown_layout()
            .filter(|_| keys > first)
            .and_then(|layout| Some((layout, buckets_for(&shape.geometry(), layout, entries)?)));
        let (layout, buckets) = grown.unwrap_or((shape.layout, shape.buckets()));
        let plan = plan(&self.settings, &shape, (layout, buckets, keys));
        Ok(Plan { capacity: keys, ..plan })
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

pub(super) fn profile(settings: &Settings) -> Profile {
    settings.profile(settings.counter_limit())
}

/// Keys that there is room for before any growth.
fn first_keys(settings: &Settings) -> u64 {
    let first = |keys: u64| keys.max(CuckooFilter::LEAST).min(settings.capacity);
    settings.grow_from.map_or(settings.capacity, first)
}

pub(super) fn shape(settings: &Settings) -> Result<Shape, BuildError> {
    let Settings { rate, prefer, .. } = *settings;
    sizing::with_true_limit(settings.capacity, |capacity| match settings.grow_from {
        None => sizing::choose(capacity, rate, prefer),
        // As `growable` sets it.
        Some(keys) if keys == settings.capacity => sizing::choose_growable(capacity, rate, prefer),
        Some(keys) => {
            let first = keys.max(CuckooFilter::LEAST);
            if first < capacity {
                sizing::choose_marked(sizing::layouts(prefer), first, capacity, rate)
            } else {
                sizing::choose_growable(keys.max(capacity), rate, prefer)
            }
        }
    })
}

/// The plan of a filter of this shape when its table has this layout, these buckets, and so many
/// keys.
fn plan(settings: &Settings, shape: &Shape, (layout, buckets, keys): (Layout, u64, u64)) -> Plan {
    let bytes = table_bytes(layout, buckets).unwrap_or(usize::MAX);
    let size_in_bytes = bytes.saturating_add(HEADER_BYTES);
    Plan {
        layout,
        capacity: settings.capacity,
        buckets,
        size_in_bytes,
        bits_per_key: image::bits_per_key(size_in_bytes, keys as f64),
        false_positive_rate: rate_at_capacity(settings, shape),
        growth_limit: shape.growth_limit_from(settings.capacity),
    }
}

fn rate_at_capacity(settings: &Settings, shape: &Shape) -> f64 {
    if shape.layout.marks().is_some() {
        sizing::rate_when_full(shape.layout, first_keys(settings), settings.capacity)
    } else {
        shape.rate_after(settings.capacity)
    }
}
