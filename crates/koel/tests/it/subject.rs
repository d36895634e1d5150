//! What filters, counting filters, maplets, expiring and concurrent filters have in common, so that
//! one test covers all of them.
//!
//! A key goes in with a value: the copies of a filter, the value itself of a maplet, and nothing of
//! a type that has neither.

use std::fmt::Debug;

use koel::{
    ConcurrentFilter, CountingFilter, CuckooFilter, ExpiringFilter, FullError, ImageError,
    InsertError, Key, KeyHasher, Maplet, Prefer, Values,
};
use testkit::image;
use testkit::keys::splitmix64;

pub(crate) trait Subject: Clone + Debug + PartialEq {
    /// Empty ones for so many keys, one of each packing.
    fn fixed(capacity: u64) -> Vec<Self>;
    /// Empty ones that grow from few keys, so that most entries lose bits.
    fn growing() -> Vec<Self>;

    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError>;
    fn verify(&self) -> Result<(), ImageError>;
    fn hasher(&self) -> KeyHasher;
    fn len(&self) -> u64;
    fn slots(&self) -> u64;
    fn size_in_bytes(&self) -> usize;
    fn load_factor(&self) -> f64;
    fn false_positive_rate(&self) -> f64;
    fn clear(&mut self);
    fn shrink_to_fit(&mut self);

    /// A value for the key with this number.
    fn value(&self, _number: u64) -> u64 {
        1
    }

    fn put<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), FullError>;
    /// Puts the keys in, those of a filter once.
    fn put_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Result<(), FullError>;
    /// Removes a copy of a key, or the key with this value.
    fn take<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool;
    fn take_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Vec<bool>;
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool;
    fn contains_many<K: Key>(&self, keys: &[K]) -> Vec<bool>;
    /// What a present key has: its count, its values in ascending order, or its age.
    fn get<K: Key + ?Sized>(&self, key: &K) -> Vec<u64>;
    fn get_many<K: Key>(&self, keys: &[K]) -> Vec<Vec<u64>>;

    /// Whether a key is there that was put in with this value.
    fn has<K: Key + ?Sized>(&self, key: &K, _value: u64) -> bool {
        self.contains(key)
    }
}

/// Calls a test for each of these types.
macro_rules! each {
    ($test:ident $arguments:tt: $($Type:ty),+) => { $($test::<$Type> $arguments;)+ };
}
pub(crate) use each;

/// Calls that all types have under one name.
macro_rules! common {
    ($self:ident: $it:expr) => {
        fn hasher(&$self) -> KeyHasher {
            $it.hasher()
        }
        fn len(&$self) -> u64 {
            $it.len()
        }
        fn slots(&$self) -> u64 {
            $it.slots()
        }
        fn size_in_bytes(&$self) -> usize {
            $it.size_in_bytes()
        }
        fn load_factor(&$self) -> f64 {
            $it.load_factor()
        }
        fn clear(&mut $self) {
            $it.clear();
        }
        fn contains<K: Key + ?Sized>(&$self, key: &K) -> bool {
            $it.contains(key)
        }
        fn contains_many<K: Key>(&$self, keys: &[K]) -> Vec<bool> {
            let mut found = vec![false; keys.len()];
            $it.contains_many(keys, &mut found);
            found
        }
    };
    // Those that a concurrent filter does not have.
    ($self:ident) => {
        common!($self: $self);
        fn to_bytes(&$self) -> Vec<u8> {
            $self.to_bytes()
        }
        fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
            Self::from_bytes(bytes)
        }
        fn verify(&$self) -> Result<(), ImageError> {
            $self.verify()
        }
        fn false_positive_rate(&$self) -> f64 {
            $self.false_positive_rate()
        }
        fn shrink_to_fit(&mut $self) {
            $self.shrink_to_fit();
        }
    };
}

/// Calls of types whose keys have counts.
macro_rules! counted {
    ($self:ident: $it:expr) => {
        fn put_many<K: Key>(&mut $self, keys: &[K], _: &[u64]) -> Result<(), FullError> {
            $it.insert_many(keys)
        }
        fn take<K: Key + ?Sized>(&mut $self, key: &K, _: u64) -> bool {
            $it.remove(key)
        }
        fn take_many<K: Key>(&mut $self, keys: &[K], _: &[u64]) -> Vec<bool> {
            let mut removed = vec![false; keys.len()];
            $it.remove_many(keys, &mut removed);
            removed
        }
        fn get<K: Key + ?Sized>(&$self, key: &K) -> Vec<u64> {
            Some($it.count(key)).filter(|&count| count > 0).into_iter().collect()
        }
        fn get_many<K: Key>(&$self, keys: &[K]) -> Vec<Vec<u64>> {
            let mut counts = vec![9; keys.len()];
            $it.count_many(keys, &mut counts);
            counts.into_iter().map(|count| if count > 0 { vec![count] } else { vec![] }).collect()
        }
    };
}

impl Subject for CuckooFilter {
    common!(self);
    counted!(self: self);

    fn fixed(capacity: u64) -> Vec<Self> {
        let small = [0.03, 0.001, 0.000_06, 1e-8].map(|rate| (rate, Prefer::Small));
        let fast = [0.03, 0.002, 1e-8].map(|rate| (rate, Prefer::Fast));
        let builder =
            |(rate, prefer)| CuckooFilter::builder(capacity, rate).prefer(prefer).build().unwrap();
        small.into_iter().chain(fast).map(builder).collect()
    }

    fn growing() -> Vec<Self> {
        let builders =
            [0.05, 0.001].into_iter().flat_map(|rate| crate::grow::builders(80_000, rate));
        builders.map(|builder| builder.build().unwrap()).collect()
    }

    fn put<K: Key + ?Sized>(&mut self, key: &K, copies: u64) -> Result<(), FullError> {
        (0..copies).try_for_each(|_| self.insert(key))
    }
}

impl Subject for CountingFilter {
    common!(self);
    counted!(self: self);

    fn fixed(capacity: u64) -> Vec<Self> {
        let builder = |bits| CountingFilter::builder(capacity, 0.001).count_bits(bits);
        [1, 8, 40].map(|bits| builder(bits).build().unwrap()).into()
    }

    /// From 40 buckets, so that most entries lose all stored bits. Their widths let all, some or
    /// hardly any counts fit into slots.
    fn growing() -> Vec<Self> {
        let ways = [(0.05, 1), (0.05, 3), (0.01, 2), (0.001, 8), (0.000_1, 30)];
        let small = ways.map(|(rate, bits)| {
            let builder = CountingFilter::builder(1_000_000, rate).count_bits(bits);
            let bytes = builder.grow_from(1000).build().unwrap().to_bytes();
            CountingFilter::from_bytes(&image::reshape(&bytes, 0, 40)).unwrap()
        });
        small.into()
    }

    fn put<K: Key + ?Sized>(&mut self, key: &K, times: u64) -> Result<(), FullError> {
        self.add(key, times).map(|count| assert!(count >= times))
    }
}

impl Subject for Maplet {
    common!(self);

    /// Buckets of 64, 128 and 256 bits.
    fn fixed(capacity: u64) -> Vec<Self> {
        let ways = [(0.004, 5), (0.1, 1), (0.001, 12), (1e-5, 40), (1e-8, 7)];
        ways.map(|(rate, bits)| Maplet::builder(capacity, rate, bits).build().unwrap()).into()
    }

    /// Of narrow slots, of wide ones, and of slots of 64 bits.
    fn growing() -> Vec<Self> {
        let ways = [(0.02, 3), (0.001, 5), (0.000_1, 20), (0.000_01, 38)];
        let builder = |(rate, bits)| Maplet::builder(1_000_000, rate, bits).grow_from(100).build();
        ways.map(|way| builder(way).unwrap()).into()
    }

    fn value(&self, number: u64) -> u64 {
        splitmix64(number) & !(u64::MAX << self.layout().value_bits())
    }

    fn put<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), FullError> {
        self.insert(key, value).map_err(full)
    }

    fn put_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Result<(), FullError> {
        self.insert_many(keys, values).map_err(full)
    }

    fn take<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool {
        self.remove(key, value)
    }

    fn take_many<K: Key>(&mut self, keys: &[K], values: &[u64]) -> Vec<bool> {
        let mut removed = vec![false; keys.len()];
        self.remove_many(keys, values, &mut removed);
        removed
    }

    fn get<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        sorted(self.get(key))
    }

    fn get_many<K: Key>(&self, keys: &[K]) -> Vec<Vec<u64>> {
        let mut values = vec![Values::default(); keys.len()];
        self.get_many(keys, &mut values);
        values.into_iter().map(sorted).collect()
    }

    fn has<K: Key + ?Sized>(&self, key: &K, value: u64) -> bool {
        self.get(key).any(|found| found == value)
    }
}

fn sorted(values: Values<'_>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// Why a maplet has no room, which is the only error of a value that fits.
fn full(error: InsertError) -> FullError {
    match error {
        InsertError::Full(full) => full,
        error => panic!("{error}"),
    }
}

impl Subject for ExpiringFilter {
    common!(self);

    fn fixed(capacity: u64) -> Vec<Self> {
        let ways = [(0.05, 4), (0.001, 24), (1e-6, 1)];
        let builder =
            |(rate, steps)| ExpiringFilter::builder(capacity, rate).window(240).steps(steps);
        ways.map(|way| builder(way).build().unwrap()).into()
    }

    fn growing() -> Vec<Self> {
        let builder = |rate| ExpiringFilter::builder(100_000, rate).window(240).grow_from(1);
        [0.01, 0.001].map(|rate| builder(rate).build().unwrap()).into()
    }

    fn put<K: Key + ?Sized>(&mut self, key: &K, _: u64) -> Result<(), FullError> {
        self.insert(key).map(drop)
    }

    fn put_many<K: Key>(&mut self, keys: &[K], _: &[u64]) -> Result<(), FullError> {
        self.insert_many(keys, &mut vec![false; keys.len()])
    }

    fn take<K: Key + ?Sized>(&mut self, key: &K, _: u64) -> bool {
        self.remove(key)
    }

    fn take_many<K: Key>(&mut self, keys: &[K], _: &[u64]) -> Vec<bool> {
        let mut removed = vec![false; keys.len()];
        self.remove_many(keys, &mut removed);
        removed
    }

    fn get<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        self.age(key).into_iter().collect()
    }

    fn get_many<K: Key>(&self, keys: &[K]) -> Vec<Vec<u64>> {
        let mut ages = vec![Some(9); keys.len()];
        self.age_many(keys, &mut ages);
        ages.into_iter().map(|age| age.into_iter().collect()).collect()
    }
}

/// A concurrent filter of one thread.
#[derive(Debug)]
pub(crate) struct Shared(pub(crate) ConcurrentFilter);

impl Shared {
    /// A plain filter that is equal.
    pub(crate) fn snapshot(&self) -> CuckooFilter {
        self.0.snapshot().unwrap()
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        Self(self.snapshot().try_into().unwrap())
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        self.snapshot() == other.snapshot()
    }
}

impl Subject for Shared {
    common!(self: self.0);
    counted!(self: self.0);

    /// Cells of 32 and of 64 bits.
    fn fixed(capacity: u64) -> Vec<Self> {
        let prefers = [Prefer::Small, Prefer::Fast].into_iter();
        let ways = prefers.flat_map(|prefer| [0.03, 0.001].map(|rate| (prefer, rate)));
        ways.map(|(prefer, rate)| {
            let builder = ConcurrentFilter::builder(capacity, rate).prefer(prefer);
            Self(builder.build().unwrap())
        })
        .collect()
    }

    fn growing() -> Vec<Self> {
        Vec::new()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.snapshot().to_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        Ok(Self(CuckooFilter::from_bytes(bytes)?.try_into().unwrap()))
    }

    fn verify(&self) -> Result<(), ImageError> {
        self.snapshot().verify()
    }

    /// Keys that share an entry are counted twice by the concurrent filter.
    fn false_positive_rate(&self) -> f64 {
        let rate = self.snapshot().false_positive_rate();
        assert!((rate..=rate * 1.05).contains(&self.0.false_positive_rate()));
        rate
    }

    fn shrink_to_fit(&mut self) {}

    fn put<K: Key + ?Sized>(&mut self, key: &K, copies: u64) -> Result<(), FullError> {
        (0..copies).try_for_each(|_| self.0.insert(key))
    }
}
