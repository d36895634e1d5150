//! Instruction counts of the other types' hot paths: growable filters, shared filters, maplets,
//! counting filters. See `filter.rs`.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

mod shared;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{ConcurrentFilter, CountingFilter, CuckooFilter, KeyHash, Maplet, Prefer, Values};
use shared::{ABSENT, CAPACITY, KEYS, PRESENT, config, unknown, without_branches};
use testkit::keys::hashes;

/// A filter or maplet, and the keys to look up.
struct Case<T> {
    it: T,
    hashes: Vec<KeyHash>,
    answers: Vec<bool>,
    values: Vec<Values>,
}

impl<T> Case<T> {
    fn new(it: T, hashes: Vec<KeyHash>) -> Box<Self> {
        let answers = vec![false; hashes.len()];
        let values = vec![Values::default(); hashes.len()];
        Box::new(Self { it, hashes, answers, values })
    }

    /// Counts the hashes that are present, as a loop of lookups does.
    #[inline(always)]
    fn count(&self, has: impl Fn(&T, &KeyHash) -> bool) {
        black_box(self.hashes.iter().filter(|hash| has(&self.it, hash)).count());
    }
}

/// The hashes of the present keys.
fn present() -> Vec<KeyHash> {
    hashes(PRESENT, CAPACITY).map(KeyHash::new).collect()
}

/// Hashes; every second one is present.
fn mixed() -> Vec<KeyHash> {
    let absent = hashes(ABSENT, KEYS as u64 / 2).map(KeyHash::new);
    let pairs = present().into_iter().zip(absent);
    pairs.flat_map(|(present, absent)| [present, absent]).collect()
}

fn absent() -> Vec<KeyHash> {
    hashes(ABSENT, KEYS as u64).map(KeyHash::new).collect()
}

// ---- setups

/// A filter that has grown to fifty times its size, with buckets of one word or of two halves.
fn grown(prefer: Prefer) -> CuckooFilter {
    let (rate, layout) = match prefer {
        Prefer::Fast => (0.001, "plain 4x24, marked"),
        Prefer::Small => (0.001, "semi-sorted 4x17, marked"),
    };
    let builder = CuckooFilter::builder(CAPACITY, rate).prefer(prefer).grow_from(1000);
    let mut filter = builder.trust_hashes().build().expect("a filter");
    // Inserts key by key: after a batch, a search would look at a tenth more.
    for hash in present() {
        filter.insert(&hash).expect("it grows");
    }
    assert_eq!(filter.layout().to_string(), layout, "the counts are named after this layout");
    filter
}

fn grown_mixed(prefer: Prefer) -> Box<Case<CuckooFilter>> {
    Case::new(grown(prefer), mixed())
}

fn grown_unknown(prefer: Prefer) -> Box<Case<CuckooFilter>> {
    Case::new(grown(prefer), unknown().into_iter().map(KeyHash::new).collect())
}

fn grown_coming(prefer: Prefer) -> Box<Case<CuckooFilter>> {
    Case::new(grown(prefer), absent())
}

fn grown_present(prefer: Prefer) -> Box<Case<CuckooFilter>> {
    let mut hashes = present();
    let last = hashes.split_off(hashes.len() - KEYS);
    Case::new(grown(prefer), last)
}

fn concurrent(prefer: Prefer, hashes: Vec<KeyHash>) -> Box<Case<ConcurrentFilter>> {
    let builder = ConcurrentFilter::builder(CAPACITY, 0.001).prefer(prefer);
    let filter = builder.trust_hashes().build().expect("a filter");
    filter.insert_many(&present()).expect("room for the capacity");
    Case::new(filter, hashes)
}

fn concurrent_mixed(prefer: Prefer) -> Box<Case<ConcurrentFilter>> {
    concurrent(prefer, mixed())
}

fn concurrent_unknown(prefer: Prefer) -> Box<Case<ConcurrentFilter>> {
    concurrent(prefer, unknown().into_iter().map(KeyHash::new).collect())
}

/// A full maplet of run ids or of locations.
fn maplet((rate, bits): (f64, u32)) -> Maplet {
    let mut maplet =
        Maplet::builder(CAPACITY, rate, bits).trust_hashes().build().expect("a maplet");
    let values: Vec<u64> = (0..CAPACITY).map(|number| number % 16).collect();
    maplet.insert_many(&present(), &values).expect("room for the capacity");
    maplet
}

const RUN: (f64, u32) = (0.004, 5);
const LOCATION: (f64, u32) = (0.000_01, 40);

fn maplet_absent(shape: (f64, u32)) -> Box<Case<Maplet>> {
    Case::new(maplet(shape), absent())
}

fn maplet_present(shape: (f64, u32)) -> Box<Case<Maplet>> {
    let mut hashes = present();
    hashes.truncate(KEYS);
    Case::new(maplet(shape), hashes)
}

/// A filter with every key once, and keys to insert again.
fn counting() -> Box<Case<CountingFilter>> {
    let mut filter =
        CountingFilter::builder(CAPACITY, 0.001).trust_hashes().build().expect("a filter");
    filter.insert_many(&present()).expect("room for the capacity");
    let mut hashes = present();
    hashes.truncate(KEYS);
    Case::new(filter, hashes)
}

// ---- benches

#[library_benchmark(setup = grown_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_contains(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    for (answer, hash) in case.answers.iter_mut().zip(&case.hashes) {
        *answer = case.it.contains(hash);
    }
    case
}

#[library_benchmark(setup = grown_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_contains_many(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    let Case { it, hashes, answers, .. } = &mut *case;
    it.contains_many(hashes, answers);
    case
}

#[library_benchmark(setup = grown_unknown, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_contains_counted(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.count(CuckooFilter::contains);
    case
}

// Includes the growth.
#[library_benchmark(setup = grown_coming)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_insert(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    for hash in &case.hashes {
        case.it.insert(hash).expect("it grows");
    }
    case
}

#[library_benchmark(setup = grown_present)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_remove(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    for (answer, hash) in case.answers.iter_mut().zip(&case.hashes) {
        *answer = case.it.remove(hash);
    }
    case
}

#[library_benchmark(setup = concurrent_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains(mut case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    for (answer, hash) in case.answers.iter_mut().zip(&case.hashes) {
        *answer = case.it.contains(hash);
    }
    case
}

#[library_benchmark(setup = concurrent_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains_many(mut case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    let Case { it, hashes, answers, .. } = &mut *case;
    it.contains_many(hashes, answers);
    case
}

#[library_benchmark(setup = concurrent_unknown, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains_counted(case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    case.count(ConcurrentFilter::contains);
    case
}

fn get_each(case: &mut Case<Maplet>) {
    for (answer, hash) in case.answers.iter_mut().zip(&case.hashes) {
        *answer = case.it.get(hash).any(|value| value > 0);
    }
}

#[library_benchmark(setup = maplet_absent)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_absent(mut case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    get_each(&mut case);
    case
}

#[library_benchmark(setup = maplet_present)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_present(mut case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    get_each(&mut case);
    case
}

#[library_benchmark(setup = maplet_absent)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_many(mut case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    let Case { it, hashes, values, .. } = &mut *case;
    it.get_many(hashes, values);
    case
}

#[library_benchmark(setup = maplet_present)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_replace(mut case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    for (number, hash) in (0..).zip(&case.hashes) {
        assert_eq!(case.it.replace(hash, number % 16, 16), Ok(true));
    }
    case
}

#[library_benchmark]
#[bench::again(counting())]
fn counting_insert(mut case: Box<Case<CountingFilter>>) -> Box<Case<CountingFilter>> {
    for hash in &case.hashes {
        case.it.insert(hash).expect("every key is in");
    }
    case
}

library_benchmark_group!(
    name = faces,
    benchmarks = [
        grown_contains,
        grown_contains_many,
        grown_contains_counted,
        grown_insert,
        grown_remove,
        concurrent_contains,
        concurrent_contains_many,
        concurrent_contains_counted,
        maplet_get_absent,
        maplet_get_present,
        maplet_get_many,
        maplet_replace,
        counting_insert,
    ]
);

main!(config = config(), library_benchmark_groups = faces);
