//! Instruction counts of lookups in filters with and without corrections. See `filter.rs`.
//!
//! *hit* is a key that is in, *refuted* one that an entry matches and a correction denies, *miss*
//! one that no entry matches. With a million corrections each setup is long under Callgrind, so
//! there are few benches.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

#[expect(dead_code, reason = "no bench here has unpredictable answers")]
mod shared;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{CuckooFilter, KeyHash};
use shared::{ABSENT, CAPACITY, Case, KEYS, PRESENT, config, keys};

/// A full filter with so many corrections, and the keys that were inserted. The first of them are
/// those that are refuted: such a key surely matches, so none has to be searched for.
fn corrected(corrections: usize) -> (CuckooFilter, Vec<KeyHash>) {
    let count = CAPACITY + corrections as u64;
    let builder = CuckooFilter::builder(count, 0.001).trust_hashes();
    let mut filter = builder.build().expect("a filter");
    let present = keys(PRESENT, count);
    filter.insert_many(&present).expect("room for the capacity");
    let made = filter.force_refute_many(&present[..corrections]).expect("fewer than slots");
    assert_eq!(made, corrections as u64, "one correction for each key");
    (filter, present)
}

fn hit(corrections: usize) -> Box<Case<CuckooFilter>> {
    let (filter, mut present) = corrected(corrections);
    let last = present.split_off(present.len() - KEYS);
    Case::new(filter, last)
}

fn refuted(corrections: usize) -> Box<Case<CuckooFilter>> {
    let (filter, present) = corrected(corrections);
    let refuted = present[..corrections].iter().copied();
    Case::new(filter, refuted.cycle().take(KEYS).collect())
}

fn miss(corrections: usize) -> Box<Case<CuckooFilter>> {
    Case::new(corrected(corrections).0, keys(ABSENT, KEYS as u64))
}

#[library_benchmark(setup = hit)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_hit(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = refuted)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_refuted(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = miss)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_miss(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = hit)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_hit_many(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask_many(|filter, keys, found| filter.contains_many(keys, found))
}

#[library_benchmark(setup = miss)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_miss_many(case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    case.ask_many(|filter, keys, found| filter.contains_many(keys, found))
}

library_benchmark_group!(
    name = corrections,
    benchmarks =
        [corrected_hit, corrected_refuted, corrected_miss, corrected_hit_many, corrected_miss_many]
);

main!(config = config(), library_benchmark_groups = corrections);
