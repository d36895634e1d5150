//! The settings of everything that is built for a capacity and a false-positive rate.
//!
//! `Builder<F>` builds an `F`. Setters that several types have are written here, once. What only
//! one type has, and how it is built, is in the `builder.rs` of that type. The traits say which
//! setters a type has; they are sealed.

use core::marker::PhantomData;

use crate::address::hash::KeyHasher;
use crate::address::hash::Route;
use crate::image::shape::{Prefer, Profile};

/// Steps of a window by default: a key may be in for 4 % longer than the window.
const STEPS: u32 = 24;

/// The settings of a filter or maplet to be built. `F` is the type that `build` returns:
/// [`CuckooFilter`](crate::CuckooFilter), `ConcurrentFilter`, `Maplet`, `CountingFilter` or
/// `ExpiringFilter`. The function `builder` of that type makes a builder.
///
/// ```
/// use koel::{CuckooFilter, Prefer};
///
/// let filter = CuckooFilter::builder(1_000_000, 0.001).prefer(Prefer::Small).seed(42).build()?;
/// assert_eq!(filter.capacity(), 1_000_000);
/// assert!(filter.bits_per_key() <= 12.4);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Builder<F> {
    pub(crate) settings: Settings,
    built: PhantomData<fn() -> F>,
}

/// The settings, without the type that is built with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
    pub(crate) prefer: Prefer,
    /// Bits of the values of a maplet or of the counts of a counting filter.
    pub(crate) value_bits: u32,
    /// Ticks of the window of an expiring filter, and the steps that it is divided into.
    pub(crate) window: u64,
    pub(crate) steps: u32,
    pub(crate) when_full: WhenFull,
    route: Route,
    application: [u8; 8],
    pub(crate) counter_limit: Option<u64>,
    /// Keys or entries that a growing table has room for at first. `None`: it does not grow.
    pub(crate) grow_from: Option<u64>,
    /// Whether bulk builds use several threads.
    #[cfg(feature = "rayon")]
    pub(crate) parallel: bool,
}

impl Settings {
    /// What the table of these settings is built with, besides its shape.
    pub(crate) fn profile(&self, counter_limit: u64) -> Profile {
        Profile {
            route: self.route,
            capacity: self.capacity,
            rate: self.rate,
            counter_limit,
            growable: self.grow_from.is_some(),
            application: self.application,
        }
    }

    /// The most counters and keys in the stash: one for each key.
    pub(crate) fn counter_limit(&self) -> u64 {
        let default = if self.grow_from.is_some() { u64::MAX } else { self.capacity };
        self.counter_limit.unwrap_or(default)
    }

    /// From keys to addresses.
    pub(crate) fn route(&self) -> Route {
        self.route
    }
}

/// What an insert into a full expiring filter does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Returns an error, and changes nothing: for replay protection, where a key that is forgotten
    /// early lets a message in again.
    #[default]
    Fail,
    /// Takes out an entry, the oldest of some 160. So some keys are forgotten early, mostly the
    /// oldest: for caches and for de-duplication.
    EvictOldest,
}

/// Filters that keep copies of a key in slots and in counters.
pub trait Multiset {}

/// Filters whose entries expire.
pub trait Expires {}

/// Filters and maplets that can be built to grow from a small table.
pub trait Grows {
    /// The smallest table that one of them starts with has room for so many keys.
    const LEAST: u64;
}

impl<F> Builder<F> {
    pub(crate) fn new(capacity: u64, rate: f64, value_bits: u32) -> Self {
        let settings = Settings {
            capacity,
            rate,
            prefer: Prefer::default(),
            value_bits,
            window: 0,
            steps: STEPS,
            when_full: WhenFull::default(),
            route: Route::default(),
            application: [0; 8],
            counter_limit: None,
            grow_from: None,
            #[cfg(feature = "rayon")]
            parallel: false,
        };
        Self { settings, built: PhantomData }
    }

    /// The builder with changed settings.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// The seed of the hash function XXH3-64. The default is [`KeyHasher::DEFAULT_SEED`]. Use a
    /// seed that nothing else uses for the same keys. Only filters with equal seeds can be merged.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        let hasher = KeyHasher::Xxh3 { seed };
        self.with(|settings| settings.route = settings.route.with_hasher(hasher))
    }

    /// Hashes keys with SipHash-1-3 and this secret, for keys that an adversary may choose. The
    /// secret is stored in the bytes of the filter or maplet.
    #[must_use]
    pub fn sip_key(self, key: [u8; 16]) -> Self {
        let hasher = KeyHasher::Sip13 { key };
        self.with(|settings| settings.route = settings.route.with_hasher(hasher))
    }

    /// Takes [ready hashes](crate::KeyHash) as they are, instead of mixing them.
    ///
    /// The caller vouches that all 64 bits of a hash are uniform, and that the hash was used for
    /// nothing else, such as dividing keys among filters. Otherwise inserts may fail before the
    /// capacity is reached, and the false-positive rate rises. A ready hash then costs a few
    /// instructions less, and any other key a few more. The bytes of the filter or maplet record
    /// the choice.
    #[must_use]
    pub fn trust_hashes(self) -> Self {
        self.with(|settings| settings.route = settings.route.trusting())
    }

    /// Stores bytes that the application interprets, such as how it makes keys of what it reads.
    /// They are zero by default.
    ///
    /// The first two say what a key is: filters in which they differ are neither merged nor
    /// compared. The others are only kept; a union has those of the first filter.
    ///
    /// The command, Python, npm and the module read there how keys were made of lines
    /// (docs/FORMAT.md, "Lines"), and refuse bytes that they do not know. Bytes of your
    /// own have bit 128 in the first: then they take each text as its own key.
    #[must_use]
    pub fn application(self, bytes: [u8; 8]) -> Self {
        self.with(|settings| settings.application = bytes)
    }
}

impl<F: Multiset> Builder<F> {
    /// Whether to optimise for size or for speed. The default is [`Prefer::Small`].
    #[must_use]
    pub fn prefer(self, prefer: Prefer) -> Self {
        self.with(|settings| settings.prefer = prefer)
    }

    /// Limits how many keys may have a counter for the copies beyond those in the buckets. A
    /// counter takes 16 bytes in a file. The default is the capacity, so that every key may come
    /// any number of times; a filter that grows has no limit by default.
    ///
    /// With a lower limit, repeated keys can fill the filter before it holds as many distinct keys
    /// as its capacity. Growth may pass the limit: an entry that has no bits left is split into
    /// two, and each of them gets a counter.
    #[must_use]
    pub fn counter_limit(self, limit: u64) -> Self {
        self.with(|settings| settings.counter_limit = Some(limit))
    }
}

impl<F: Expires> Builder<F> {
    /// The window in ticks, such as 600,000 for ten minutes where a tick is a millisecond. It has
    /// no default. Give the whole window, also where keys get a shorter time to live.
    #[must_use]
    pub fn window(self, ticks: u64) -> Self {
        self.with(|settings| settings.window = ticks)
    }

    /// The steps that the window is divided into, 1 to 200; the default is 24. A key is in for at
    /// least the window, and for at most one step more. A stamp beside each fingerprint says the
    /// step, in 2 bits for one step, 3 for 6, 4 for 12, 5 for 24 to 27, 6 for 55, 7 for 112.
    #[must_use]
    pub fn steps(self, steps: u32) -> Self {
        self.with(|settings| settings.steps = steps)
    }

    /// What an insert does that finds no room. The default is [`WhenFull::Fail`].
    #[must_use]
    pub fn when_full(self, when_full: WhenFull) -> Self {
        self.with(|settings| settings.when_full = when_full)
    }
}

impl<F: Grows> Builder<F> {
    /// Starts with room for about `keys` keys, and grows to the capacity and beyond without the old
    /// keys. A [`CuckooFilter`](crate::CuckooFilter) starts with room for at least 1000 keys, a
    /// [`Maplet`](crate::Maplet), [`CountingFilter`](crate::CountingFilter) or
    /// [`ExpiringFilter`](crate::ExpiringFilter) for at least 8192.
    ///
    /// * Growth proceeds in chunks that take less than a millisecond each. It keeps a load of about
    ///   0.86, or 0.79 with [`Prefer::Fast`]; with values or counts 0.89. A lookup always reads two
    ///   buckets.
    /// * Beside a filter that is built for as many keys, a key takes half as many bits again, an
    ///   insert three to four times as long, and a lookup twice as long. If the number of keys can
    ///   be known, build for it without this.
    /// * Up to the capacity, the false-positive rate stays below the one given to the builder. Each
    ///   further doubling adds as much to the rate as each earlier one did: about 0.7 of the rate
    ///   of the first full table. After ten doublings, the eleventh raises the rate by a tenth.
    ///
    /// ```
    /// // From a thousand keys to any number up to a million, at a rate of at most 0.1 %.
    /// let mut filter = koel::CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build()?;
    /// filter.try_extend(0_u64..100_000)?;
    /// assert!(filter.size_in_bytes() * 8 < 100_000 * 20);
    ///
    /// let builder = koel::Maplet::builder(1_000_000_000, 0.000_01, 38);
    /// let mut offsets = builder.grow_from(1000).build()?;
    /// for number in 0..20_000_u64 {
    ///     offsets.insert(&number, 8 * number)?;
    /// }
    /// assert!((0..20_000_u64).all(|number| offsets.get(&number).any(|at| at == 8 * number)));
    /// assert!(offsets.load_factor() > 0.87);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grow_from(self, keys: u64) -> Self {
        self.with(|settings| settings.grow_from = Some(keys))
    }
}

impl<F> Clone for Builder<F> {
    fn clone(&self) -> Self {
        Self { settings: self.settings, built: PhantomData }
    }
}
