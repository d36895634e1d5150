//! What is measured: filters and maps that forget keys after a window, behind one trait.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use koel::{CuckooFilter, ExpiringFilter, Prefer};
use moka::sync::Cache;

/// A set that forgets.
pub(super) trait Window {
    /// Goes to the next step.
    fn step(&mut self);
    /// Adds a key unless it is in.
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    /// The bytes that it says it has.
    fn bytes(&self) -> Option<usize>;
}

/// One of the sets, and how it is built for a number of keys in a window, a false-positive rate and
/// a number of steps.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) build: fn(u64, f64, u64) -> Box<dyn Window>,
}

pub(super) const SUBJECTS: &[Subject] = &[
    Subject { name: "koel", build: |keys, rate, steps| koel(keys, rate, steps, 24) },
    Subject { name: "koel, 6 steps", build: |keys, rate, steps| koel(keys, rate, steps, 6) },
    Subject { name: "koel, growing", build: growing },
    Subject { name: "two koel filters", build: |keys, rate, steps| rotating(keys, rate, steps) },
    Subject {
        name: "koel filter, remove and insert",
        build: |keys, rate, _| Box::new(Removing::new(keys, rate)),
    },
    Subject { name: "cuckoo-clock", build: cuckoo_clock },
    Subject { name: "HashMap with a queue", build: |_, _, steps| Box::new(Exact::new(steps)) },
    Subject { name: "moka", build: |keys, _, _| Box::new(Moka(Cache::new(keys))) },
];

/// A filter, and the present tick. A step of the stream is a tick.
struct Koel(ExpiringFilter, u64);

fn koel(keys: u64, rate: f64, window: u64, steps: u32) -> Box<dyn Window> {
    let builder = ExpiringFilter::builder(keys, rate).window(window).steps(steps);
    Box::new(Koel(builder.build().expect("a common rate"), 0))
}

/// Grows from the fewest keys to those of a window, and keeps its rate up to a hundred times more.
fn growing(keys: u64, rate: f64, steps: u64) -> Box<dyn Window> {
    let builder = ExpiringFilter::builder(100 * keys, rate).window(steps).grow_from(1);
    Box::new(Koel(builder.build().expect("a common rate"), 0))
}

impl Window for Koel {
    fn step(&mut self) {
        self.1 += 1;
        self.0.advance(self.1);
    }

    fn insert(&mut self, key: u64) {
        self.0.insert_unique(&key).expect("room for a window");
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.0.size_in_bytes())
    }
}

/// Two filters for the keys of a window each; the older one is emptied when a window ends.
struct Rotating {
    filters: [CuckooFilter; 2],
    steps: u64,
    step: u64,
}

fn rotating(keys: u64, rate: f64, steps: u64) -> Box<dyn Window> {
    let build = || CuckooFilter::builder(keys, rate / 2.0).build().expect("a common rate");
    Box::new(Rotating { filters: [build(), build()], steps, step: 0 })
}

impl Window for Rotating {
    fn step(&mut self) {
        self.step += 1;
        if self.step.is_multiple_of(self.steps) {
            self.filters.swap(0, 1);
            self.filters[0].clear();
        }
    }

    fn insert(&mut self, key: u64) {
        if !self.filters[1].contains(&key) {
            self.filters[0].insert_unique(&key).expect("room for a window");
        }
    }

    fn contains(&self, key: u64) -> bool {
        self.filters.iter().any(|filter| filter.contains(&key))
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.filters.iter().map(CuckooFilter::size_in_bytes).sum())
    }
}

/// A plain filter that the caller removes old keys from: it keeps every key elsewhere. For the cost
/// of a removal and an insert at the load of a full filter.
struct Removing {
    filter: CuckooFilter,
    keys: VecDeque<u64>,
    capacity: usize,
}

impl Removing {
    fn new(keys: u64, rate: f64) -> Self {
        let builder = CuckooFilter::builder(keys, rate).prefer(Prefer::Fast);
        let filter = builder.build().expect("a common rate");
        Self { filter, keys: VecDeque::new(), capacity: usize::try_from(keys).expect("few") }
    }
}

impl Window for Removing {
    fn step(&mut self) {}

    fn insert(&mut self, key: u64) {
        if self.keys.len() >= self.capacity
            && let Some(old) = self.keys.pop_front()
        {
            self.filter.remove(&old);
        }
        self.keys.push_back(key);
        self.filter.insert(&key).expect("room for a window");
    }

    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    /// Without the keys, which the caller keeps.
    fn bytes(&self) -> Option<usize> {
        Some(self.filter.size_in_bytes())
    }
}

/// `cuckoo-clock`: a time to live beside each fingerprint, which a pass lowers in each step.
struct Clocked(cuckoo_clock::CuckooFilter<std::hash::RandomState>);

fn cuckoo_clock(keys: u64, _: f64, steps: u64) -> Box<dyn Window> {
    let bits = |bits: usize| bits.try_into().expect("1 to 32 bits");
    let ttl = u32::try_from(steps + 1).ok().and_then(NonZeroU32::new).expect("few steps");
    let configuration = CuckooConfiguration::builder(usize::try_from(keys).expect("few"))
        .fingerprint_bits(bits(13))
        .with_ttl(TtlConfig { ttl, ttl_bits: bits(5) })
        .build()
        .expect("sound settings");
    Box::new(Clocked(cuckoo_clock::CuckooFilter::new_random(configuration)))
}

impl Window for Clocked {
    fn step(&mut self) {
        self.0.scan_and_update_full();
    }

    fn insert(&mut self, key: u64) {
        self.0.insert_if_not_present(&key);
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.0.get_memory_usage())
    }
}

/// An exact set: a map from keys to steps, and a queue of both.
struct Exact {
    seen: HashMap<u64, u64>,
    queue: VecDeque<(u64, u64)>,
    steps: u64,
    step: u64,
}

impl Exact {
    fn new(steps: u64) -> Self {
        Self { seen: HashMap::new(), queue: VecDeque::new(), steps, step: 0 }
    }
}

impl Window for Exact {
    fn step(&mut self) {
        self.step += 1;
        while let Some(&(step, key)) = self.queue.front()
            && self.step - step > self.steps
        {
            self.queue.pop_front();
            self.seen.remove(&key);
        }
    }

    fn insert(&mut self, key: u64) {
        if self.seen.insert(key, self.step).is_none() {
            self.queue.push_back((self.step, key));
        }
    }

    fn contains(&self, key: u64) -> bool {
        self.seen.contains_key(&key)
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}

/// `moka`, which forgets by count here, since its time cannot be injected.
struct Moka(Cache<u64, ()>);

impl Window for Moka {
    fn step(&mut self) {
        self.0.run_pending_tasks();
    }

    fn insert(&mut self, key: u64) {
        if !self.0.contains_key(&key) {
            self.0.insert(key, ());
        }
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains_key(&key)
    }

    fn bytes(&self) -> Option<usize> {
        None
    }
}
