//! Koel itself with both preferences, in all modes. Memory is [`CuckooFilter::size_in_bytes`],
//! header included.

use koel::{Builder, CuckooFilter, Prefer};

use crate::subject::{Calls, Filter};

pub(super) fn fast(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_calls(CuckooFilter::builder(keys as u64, rate).prefer(Prefer::Fast))
}

pub(super) fn small(keys: usize, rate: f64) -> Box<dyn Filter> {
    with_calls(CuckooFilter::builder(keys as u64, rate).prefer(Prefer::Small))
}

/// The empty filter with its calls.
pub(super) fn with_calls(builder: Builder<CuckooFilter>) -> Box<dyn Filter> {
    let calls = Calls::new(
        builder.build().expect("rates and sizes of the bench can be built"),
        |filter, key| filter.insert(&key).is_ok(),
        |filter, key| filter.contains(&key),
        |filter, key| filter.remove(&key),
    );
    let calls = calls.many(
        |filter, keys| {
            let before = filter.len();
            // If a key is refused, those before it are in.
            match filter.insert_many(keys) {
                Ok(()) => keys.len(),
                Err(_) => usize::try_from(filter.len() - before).unwrap_or(usize::MAX),
            }
        },
        |filter, keys, found| filter.contains_many(keys, found),
        |filter, keys, removed| filter.remove_many(keys, removed),
    );
    let calls = calls.bulk(move |keys| builder.build_from(keys).ok());
    let calls = calls.with_bytes(CuckooFilter::size_in_bytes);
    Box::new(calls.with_slots(|filter| usize::try_from(filter.slots()).ok()))
}
