//! Filters that grow without their keys: Koel, and two rivals.
//!
//! Of `Prefer::Fast` only `growable`: its fingerprints have 8, 12, 16, 24 or 32 bits, and at the usual rates `grow_from` gets the same 24.
//! All start with room for [`FIRST`] keys. Koel takes keys in slices or one by one, the rivals one by one.

use koel::{Builder, CuckooFilter, Prefer};
use qfilter::Filter as Quotient;

use super::koel::{SLICE, tally_slices};
use super::{qfilter as quotient, scalable_cuckoo};
use crate::subject::{Filter, tally};

/// Keys that every filter has room for at first.
pub(crate) const FIRST: u64 = 1000;

/// A filter that grows.
pub(crate) struct Growing {
    pub(crate) name: &'static str,
    /// The empty filter that is to reach so many keys at this error rate.
    pub(crate) build: fn(u64, f64) -> Box<dyn Filter>,
    /// What the fixed Koel filter prefers that this one is compared with.
    pub(crate) fixed: Option<Prefer>,
}

/// Koel first.
pub(crate) static GROWING: [Growing; 5] = [
    Growing { name: "koel-small growable", build: small, fixed: Some(Prefer::Small) },
    Growing { name: "koel-small grow_from", build: small_from, fixed: Some(Prefer::Small) },
    Growing { name: "koel-fast growable", build: fast, fixed: Some(Prefer::Fast) },
    Growing { name: "qfilter resizeable", build: resizeable, fixed: None },
    Growing { name: "scalable_cuckoo_filter+mix", build: scalable, fixed: None },
];

/// A Koel filter of one size and of at most so many bytes, and how many keys it has room for.
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

fn small(_last: u64, rate: f64) -> Box<dyn Filter> {
    built(&CuckooFilter::builder(FIRST, rate).growable())
}

fn small_from(last: u64, rate: f64) -> Box<dyn Filter> {
    built(&CuckooFilter::builder(last, rate).grow_from(FIRST))
}

fn fast(_last: u64, rate: f64) -> Box<dyn Filter> {
    built(&CuckooFilter::builder(FIRST, rate).growable().prefer(Prefer::Fast))
}

fn resizeable(last: u64, rate: f64) -> Box<dyn Filter> {
    let filter = Quotient::new_resizeable(FIRST, last, rate);
    Box::new(quotient::Rival(filter.expect("sizes of the bench can be built")))
}

fn scalable(_last: u64, rate: f64) -> Box<dyn Filter> {
    scalable_cuckoo::mix(usize::try_from(FIRST).unwrap_or(usize::MAX), rate)
}

fn built(builder: &Builder) -> Box<dyn Filter> {
    Box::new(Either(builder.build().expect("rates and sizes of the bench can be built")))
}

/// Koel, one key a call or many, as it is asked. A single key goes in by itself, more go in together.
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
