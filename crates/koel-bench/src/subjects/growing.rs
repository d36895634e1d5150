//! Growable filters: Koel and its rivals. None needs the original keys to grow.
//!
//! Every filter starts with room for [`FIRST`] keys, unless its name says "begun large".
//! `Prefer::Fast` is measured with `growable` alone: its fingerprints have 8, 12, 16, 24 or 32
//! bits, and at the usual rates `grow_from` picks the same 24. Two kinds are measured for single
//! inserts and memory only: filters that begin large, whose first growth widens a large table, and
//! the maplets of the log store's index. Koel takes keys in slices or singly, the rivals singly.

use koel::Prefer::{Fast, Small};
use koel::{Builder, CuckooFilter, Maplet, Prefer};
use qfilter::Filter as Quotient;

use super::koel::{SLICE, tally_slices};
use super::{qfilter as quotient, scalable_cuckoo};
use crate::subject::{Filter, tally, until_refused};

/// The number of keys that every filter has room for at first.
pub(crate) const FIRST: u64 = 1000;

/// A growable filter.
pub(crate) struct Growing {
    pub(crate) name: &'static str,
    /// Builds the empty filter that will grow to this many keys at this false-positive rate.
    pub(crate) build: fn(u64, f64) -> Box<dyn Filter>,
    /// The preference of the fixed Koel filter that this one is compared with.
    pub(crate) fixed: Option<Prefer>,
    /// Whether only single inserts and memory are measured.
    pub(crate) inserts_alone: bool,
}

impl Growing {
    const fn new(
        name: &'static str,
        build: fn(u64, f64) -> Box<dyn Filter>,
        fixed: Option<Prefer>,
    ) -> Self {
        Self { name, build, fixed, inserts_alone: false }
    }

    const fn inserts_alone(name: &'static str, build: fn(u64, f64) -> Box<dyn Filter>) -> Self {
        Self { name, build, fixed: None, inserts_alone: true }
    }
}

/// Koel comes first.
pub(crate) static GROWING: [Growing; 9] = [
    Growing::new("koel-small growable", small, Some(Prefer::Small)),
    Growing::new("koel-small grow_from", small_from, Some(Prefer::Small)),
    Growing::new("koel-fast growable", fast, Some(Prefer::Fast)),
    Growing::new("qfilter resizeable", resizeable, None),
    Growing::new("scalable_cuckoo_filter+mix", scalable, None),
    Growing::inserts_alone("koel-small begun large", |last, rate| {
        koel(three_quarters(last), rate, Small)
    }),
    Growing::inserts_alone("koel-fast begun large", |last, rate| {
        koel(three_quarters(last), rate, Fast)
    }),
    Growing::inserts_alone("qfilter begun large", |last, rate| {
        quotient_for(three_quarters(last), last, rate)
    }),
    Growing::inserts_alone("koel-maplet, 16 of locations", |_, _| Box::new(Locations::new())),
];

/// A fixed Koel filter of at most this many bytes, and the number of keys it has room for.
pub(crate) fn fixed(bytes: usize, rate: f64, prefer: Prefer) -> (Box<dyn Filter>, u64) {
    let builder = |keys| CuckooFilter::builder(keys, rate).prefer(prefer);
    let size = |keys| builder(keys).plan().map_or(usize::MAX, |plan| plan.size_in_bytes);
    let (mut fits, mut too_many) = (1, bytes as u64 * 8);
    while too_many - fits > 1 {
        let middle = u64::midpoint(fits, too_many);
        if size(middle) <= bytes { fits = middle } else { too_many = middle }
    }
    (built(&builder(fits)), fits)
}

fn three_quarters(keys: u64) -> u64 {
    keys / 4 * 3
}

fn koel(first: u64, rate: f64, prefer: Prefer) -> Box<dyn Filter> {
    built(&CuckooFilter::builder(first, rate).growable().prefer(prefer))
}

fn small(_last: u64, rate: f64) -> Box<dyn Filter> {
    koel(FIRST, rate, Small)
}

fn small_from(last: u64, rate: f64) -> Box<dyn Filter> {
    built(&CuckooFilter::builder(last, rate).grow_from(FIRST))
}

fn fast(_last: u64, rate: f64) -> Box<dyn Filter> {
    koel(FIRST, rate, Fast)
}

fn resizeable(last: u64, rate: f64) -> Box<dyn Filter> {
    quotient_for(FIRST, last, rate)
}

fn quotient_for(first: u64, last: u64, rate: f64) -> Box<dyn Filter> {
    let filter = Quotient::new_resizeable(first, last, rate);
    Box::new(quotient::Rival(filter.expect("sizes of the bench can be built")))
}

fn scalable(_last: u64, rate: f64) -> Box<dyn Filter> {
    scalable_cuckoo::mix(usize::try_from(FIRST).unwrap_or(usize::MAX), rate)
}

fn built(builder: &Builder<CuckooFilter>) -> Box<dyn Filter> {
    Box::new(Either(builder.build().expect("rates and sizes of the bench can be built")))
}

/// Koel, single or batched, depending on the slice: one key is inserted or looked up by the single
/// call, more keys by the batched one.
struct Either(CuckooFilter);

impl Filter for Either {
    fn insert(&mut self, keys: &[u64]) -> usize {
        if let [key] = keys {
            return usize::from(self.0.insert(key).is_ok());
        }
        let slices =
            keys.chunks(SLICE).map(|slice| (self.0.insert_many(slice).is_ok(), slice.len()));
        slices.take_while(|(room, _)| *room).map(|(_, keys)| keys).sum()
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(&key))
    }

    fn find_many(&self, keys: &[u64]) -> Option<usize> {
        Some(tally_slices(keys, |slice, found| self.0.contains_many(slice, found)))
    }

    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    fn slots(&self) -> Option<usize> {
        usize::try_from(self.0.slots()).ok()
    }
}

/// The index of the log store (`koel-store`, `log/index.rs`) without its locks: 38-bit locations in
/// 16 maplets that start as small as possible.
struct Locations([Maplet; 16]);

impl Locations {
    fn new() -> Self {
        let maplet = |_| Maplet::builder(1 << 28, 1e-5, 38).grow_from(0).build();
        Self(std::array::from_fn(|i| maplet(i).expect("a shape that can be built")))
    }

    /// The shard of a key: keys are uniform.
    fn shard(key: u64) -> usize {
        (key >> 60) as usize
    }
}

impl Filter for Locations {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.0[Self::shard(key)].insert(&key, key >> 26).is_ok())
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0[Self::shard(key)].contains(&key))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(Maplet::size_in_bytes).sum()
    }
}
