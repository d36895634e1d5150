//! Growable filters: Koel and its rivals. None needs the original keys to grow.
//!
//! Every filter starts with room for [`FIRST`] keys, unless its name says "begun large".
//! `Prefer::Fast` is measured with `growable` alone: its fingerprints have 8, 12, 16, 24 or 32
//! bits, and at the usual rates `grow_from` picks the same 24. Two kinds are measured for single
//! inserts and memory only: filters that begin large, whose first growth widens a large table, and
//! the maplets of the log store's index. Koel takes keys in slices or singly, the rivals singly.

use koel::Prefer::{Fast, Small};
use koel::{CuckooFilter, Maplet, Prefer};
use qfilter::Filter as Quotient;

use super::koel::with_calls;
use super::{Mix, no_delete, rivals};
use crate::subject::{Calls, Filter};

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

const fn beside(
    fixed: Option<Prefer>,
    name: &'static str,
    build: fn(u64, f64) -> Box<dyn Filter>,
) -> Growing {
    Growing { name, build, fixed, inserts_alone: false }
}

const fn inserts_alone(name: &'static str, build: fn(u64, f64) -> Box<dyn Filter>) -> Growing {
    Growing { name, build, fixed: None, inserts_alone: true }
}

/// Koel comes first.
pub(crate) static GROWING: [Growing; 9] = [
    beside(Some(Small), "koel-small growable", |_, rate| koel(FIRST, rate, Small)),
    beside(Some(Small), "koel-small grow_from", |last, rate| {
        with_calls(CuckooFilter::builder(last, rate).grow_from(FIRST))
    }),
    beside(Some(Fast), "koel-fast growable", |_, rate| koel(FIRST, rate, Fast)),
    beside(None, "qfilter resizeable", |last, rate| quotient(FIRST, last, rate)),
    beside(None, "scalable_cuckoo_filter+mix", |_, rate| {
        rivals::scalable_cuckoo::<Mix>(usize::try_from(FIRST).unwrap_or(usize::MAX), rate)
    }),
    inserts_alone("koel-small begun large", |last, rate| koel(last / 4 * 3, rate, Small)),
    inserts_alone("koel-fast begun large", |last, rate| koel(last / 4 * 3, rate, Fast)),
    inserts_alone("qfilter begun large", |last, rate| quotient(last / 4 * 3, last, rate)),
    inserts_alone("koel-maplet, 16 of locations", |_, _| locations()),
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
    (with_calls(builder(fits)), fits)
}

fn koel(first: u64, rate: f64, prefer: Prefer) -> Box<dyn Filter> {
    with_calls(CuckooFilter::builder(first, rate).growable().prefer(prefer))
}

fn quotient(first: u64, last: u64, rate: f64) -> Box<dyn Filter> {
    let filter = Quotient::new_resizeable(first, last, rate);
    rivals::quotient(filter.expect("sizes of the bench can be built"))
}

/// The index of the log store (`koel-store`, `log/index.rs`) without its locks: 38-bit locations in
/// 16 maplets that start as small as possible. Keys are uniform.
fn locations() -> Box<dyn Filter> {
    let maplet = |_| Maplet::builder(1 << 28, 1e-5, 38).grow_from(0).build();
    let maplets: [Maplet; 16] =
        std::array::from_fn(|i| maplet(i).expect("a shape that can be built"));
    let shard = |key: u64| (key >> 60) as usize;
    let calls = Calls::new(
        maplets,
        move |maplets: &mut [Maplet; 16], key| maplets[shard(key)].insert(&key, key >> 26).is_ok(),
        move |maplets, key| maplets[shard(key)].contains(&key),
        no_delete,
    );
    Box::new(calls.with_bytes(|maplets| maplets.iter().map(Maplet::size_in_bytes).sum()))
}
