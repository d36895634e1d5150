//! What is measured: filters and maps that forget keys after a window.
//!
//! `insert` adds a key unless it is in; [`Filter::step`] goes to the next of the steps of a window.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use koel::{Builder, CuckooFilter, ExpiringFilter, Prefer};
use moka::sync::Cache;

use crate::subject::{Calls, Filter};
use crate::subjects::no_delete;

/// One of the sets, and how it is built for a number of keys in a window, a false-positive rate and
/// a number of steps.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) build: fn(u64, f64, u64) -> Box<dyn Filter>,
}

pub(super) const SUBJECTS: &[Subject] = &[
    Subject { name: "koel", build: |keys, rate, steps| koel(keys, rate, steps, 24) },
    Subject { name: "koel, 6 steps", build: |keys, rate, steps| koel(keys, rate, steps, 6) },
    // Grows from the fewest keys to those of a window, and keeps its rate up to a hundred times
    // more.
    Subject {
        name: "koel, growing",
        build: |keys, rate, steps| {
            ticking(ExpiringFilter::builder(100 * keys, rate).window(steps).grow_from(1))
        },
    },
    Subject { name: "two koel filters", build: rotating },
    Subject { name: "koel filter, remove and insert", build: removing },
    Subject { name: "cuckoo-clock", build: cuckoo_clock },
    Subject { name: "HashMap with a queue", build: |_, _, steps| exact(steps) },
    Subject { name: "moka", build: |keys, _, _| moka(keys) },
];

fn koel(keys: u64, rate: f64, window: u64, steps: u32) -> Box<dyn Filter> {
    ticking(ExpiringFilter::builder(keys, rate).window(window).steps(steps))
}

/// A filter, and the present tick. A step of the stream is a tick.
fn ticking(builder: Builder<ExpiringFilter>) -> Box<dyn Filter> {
    let calls = Calls::new(
        (builder.build().expect("a common rate"), 0),
        |(filter, _), key| filter.insert_unique(&key).is_ok(),
        |(filter, _), key| filter.contains(&key),
        no_delete,
    );
    let calls = calls.with_bytes(|(filter, _)| filter.size_in_bytes());
    Box::new(calls.with_step(|(filter, tick)| {
        *tick += 1;
        filter.advance(*tick);
    }))
}

/// Two filters for the keys of a window each; the older one is emptied when a window ends.
fn rotating(keys: u64, rate: f64, steps: u64) -> Box<dyn Filter> {
    let build = || CuckooFilter::builder(keys, rate / 2.0).build().expect("a common rate");
    let calls = Calls::new(
        ([build(), build()], 0_u64, steps),
        |([newer, older], ..), key| older.contains(&key) || newer.insert_unique(&key).is_ok(),
        |(filters, ..), key| filters.iter().any(|filter| filter.contains(&key)),
        no_delete,
    );
    let calls =
        calls.with_bytes(|(filters, ..)| filters.iter().map(CuckooFilter::size_in_bytes).sum());
    Box::new(calls.with_step(|(filters, step, steps)| {
        *step += 1;
        if step.is_multiple_of(*steps) {
            filters.swap(0, 1);
            filters[0].clear();
        }
    }))
}

/// A plain filter that the caller removes old keys from: it keeps every key elsewhere. For the cost
/// of a removal and an insert at the load of a full filter. Its bytes are those without the keys.
fn removing(keys: u64, rate: f64, _steps: u64) -> Box<dyn Filter> {
    let builder = CuckooFilter::builder(keys, rate).prefer(Prefer::Fast);
    let capacity = usize::try_from(keys).expect("few");
    let calls = Calls::new(
        (builder.build().expect("a common rate"), VecDeque::new()),
        move |(filter, queue): &mut (CuckooFilter, VecDeque<u64>), key| {
            if queue.len() >= capacity
                && let Some(old) = queue.pop_front()
            {
                filter.remove(&old);
            }
            queue.push_back(key);
            filter.insert(&key).is_ok()
        },
        |(filter, _), key| filter.contains(&key),
        no_delete,
    );
    Box::new(calls.with_bytes(|(filter, _)| filter.size_in_bytes()))
}

/// `cuckoo-clock`: a time to live beside each fingerprint, which a pass lowers in each step.
fn cuckoo_clock(keys: u64, _: f64, steps: u64) -> Box<dyn Filter> {
    let bits = |bits: usize| bits.try_into().expect("1 to 32 bits");
    let ttl = u32::try_from(steps + 1).ok().and_then(NonZeroU32::new).expect("few steps");
    let configuration = CuckooConfiguration::builder(usize::try_from(keys).expect("few"))
        .fingerprint_bits(bits(13))
        .with_ttl(TtlConfig { ttl, ttl_bits: bits(5) })
        .build()
        .expect("sound settings");
    type Clock = cuckoo_clock::CuckooFilter<std::hash::RandomState>;
    let calls = Calls::new(
        Clock::new_random(configuration),
        |filter, key| {
            filter.insert_if_not_present(&key);
            true
        },
        |filter, key| filter.contains(&key),
        no_delete,
    );
    let calls = calls.with_bytes(Clock::get_memory_usage);
    Box::new(calls.with_step(|filter| {
        filter.scan_and_update_full();
    }))
}

/// An exact set: a map from keys to steps, and a queue of both.
struct Exact {
    seen: HashMap<u64, u64>,
    queue: VecDeque<(u64, u64)>,
    steps: u64,
    step: u64,
}

fn exact(steps: u64) -> Box<dyn Filter> {
    let calls = Calls::new(
        Exact { seen: HashMap::new(), queue: VecDeque::new(), steps, step: 0 },
        |set, key| {
            if set.seen.insert(key, set.step).is_none() {
                set.queue.push_back((set.step, key));
            }
            true
        },
        |set, key| set.seen.contains_key(&key),
        no_delete,
    );
    Box::new(calls.with_step(|set| {
        set.step += 1;
        while let Some(&(step, key)) = set.queue.front()
            && set.step - step > set.steps
        {
            set.queue.pop_front();
            set.seen.remove(&key);
        }
    }))
}

/// `moka`, which forgets by count here, since its time cannot be injected.
fn moka(keys: u64) -> Box<dyn Filter> {
    let calls = Calls::new(
        Cache::new(keys),
        |cache, key| {
            if !cache.contains_key(&key) {
                cache.insert(key, ());
            }
            true
        },
        |cache, key| cache.contains_key(&key),
        no_delete,
    );
    Box::new(calls.with_step(|cache| cache.run_pending_tasks()))
}
