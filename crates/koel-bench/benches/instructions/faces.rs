//! Instruction counts of the other types' hot paths: growable filters, shared filters, maplets,
//! counting filters. See `filter.rs`.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

mod shared;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{ConcurrentFilter, CountingFilter, CuckooFilter, KeyHash, Maplet, Prefer, Values};
use shared::{ABSENT, CAPACITY, Case, KEYS, PRESENT, config, keys, unknown, without_branches};

/// The hashes of the present keys.
fn present() -> Vec<KeyHash> {
    keys(PRESENT, CAPACITY)
}

/// Hashes; every second one is present.
fn mixed() -> Vec<KeyHash> {
    let pairs = present().into_iter().zip(keys(ABSENT, KEYS as u64 / 2));
    pairs.flat_map(|(present, absent)| [present, absent]).collect()
}

fn absent() -> Vec<KeyHash> {
    keys(ABSENT, KEYS as u64)
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

/// A maplet, and room for the values of all keys.
type WithValues = (&'static Maplet, Vec<Values<'static>>);

fn maplet_with_values(shape: (f64, u32)) -> Box<Case<WithValues>> {
    Case::new((Box::leak(Box::new(maplet(shape))), vec![Values::default(); KEYS]), absent())
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
fn grown_contains(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = grown_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_contains_many(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask_many(|filter, keys, found| filter.contains_many(keys, found))
}

#[library_benchmark(setup = grown_unknown, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_contains_counted(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.count(CuckooFilter::contains)
}

// Includes the growth.
#[library_benchmark(setup = grown_coming)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_insert(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.each(|filter, key| filter.insert(key).expect("it grows"))
}

#[library_benchmark(setup = grown_present)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn grown_remove(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask(|filter, key| filter.remove(key))
}

#[library_benchmark(setup = concurrent_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains(case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = concurrent_mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains_many(case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    case.ask_many(|filter, keys, found| filter.contains_many(keys, found))
}

#[library_benchmark(setup = concurrent_unknown, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn concurrent_contains_counted(case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    case.count(ConcurrentFilter::contains)
}

#[library_benchmark(setup = maplet_absent)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_absent(case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    case.ask(|maplet, key| maplet.get(key).any(|value| value > 0))
}

#[library_benchmark(setup = maplet_present)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_present(case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    case.ask(|maplet, key| maplet.get(key).any(|value| value > 0))
}

#[library_benchmark(setup = maplet_with_values)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_get_many(case: Box<Case<WithValues>>) -> Box<Case<WithValues>> {
    case.ask_many(|(maplet, values), keys, _| maplet.get_many(keys, values))
}

#[library_benchmark(setup = maplet_present)]
#[bench::run(RUN)]
#[bench::location(LOCATION)]
fn maplet_replace(case: Box<Case<Maplet>>) -> Box<Case<Maplet>> {
    let mut number = 0;
    case.each(|maplet, key| {
        assert_eq!(maplet.replace(key, number % 16, 16), Ok(true));
        number += 1;
    })
}

#[library_benchmark]
#[bench::again(counting())]
fn counting_insert(case: Box<Case<CountingFilter>>) -> Box<Case<CountingFilter>> {
    case.each(|filter, key| {
        filter.insert(key).expect("every key is in");
    })
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
