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
use shared::{ABSENT, CAPACITY, KEYS, PRESENT, config};
use testkit::keys::hashes;

/// A filter, and the keys to look up.
struct Case {
    filter: CuckooFilter,
    hashes: Vec<KeyHash>,
    answers: Vec<bool>,
}

impl Case {
    fn new(filter: CuckooFilter, hashes: Vec<KeyHash>) -> Box<Self> {
        let answers = vec![false; hashes.len()];
        Box::new(Self { filter, hashes, answers })
    }
}

/// A full filter with so many corrections, and the keys that were inserted. The first of them are
/// those that are refuted: such a key surely matches, so none has to be searched for.
fn corrected(corrections: usize) -> (CuckooFilter, Vec<KeyHash>) {
    let keys = CAPACITY + corrections as u64;
    let builder = CuckooFilter::builder(keys, 0.001).trust_hashes();
    let mut filter = builder.build().expect("a filter");
    let present: Vec<_> = hashes(PRESENT, keys).map(KeyHash::new).collect();
    filter.insert_many(&present).expect("room for the capacity");
    let made = filter.refute_many(&present[..corrections]).expect("fewer than slots");
    assert_eq!(made, corrections as u64, "one correction for each key");
    (filter, present)
}

fn hit(corrections: usize) -> Box<Case> {
    let (filter, mut present) = corrected(corrections);
    let last = present.split_off(present.len() - KEYS);
    Case::new(filter, last)
}

fn refuted(corrections: usize) -> Box<Case> {
    let (filter, present) = corrected(corrections);
    let refuted = present[..corrections].iter().copied();
    Case::new(filter, refuted.cycle().take(KEYS).collect())
}

fn miss(corrections: usize) -> Box<Case> {
    let absent = hashes(ABSENT, KEYS as u64).map(KeyHash::new).collect();
    Case::new(corrected(corrections).0, absent)
}

fn ask(case: &mut Case) {
    for (answer, hash) in case.answers.iter_mut().zip(&case.hashes) {
        *answer = case.filter.contains(hash);
    }
}

fn ask_many(case: &mut Case) {
    let Case { filter, hashes, answers } = case;
    filter.contains_many(hashes, answers);
}

#[library_benchmark(setup = hit)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_hit(mut case: Box<Case>) -> Box<Case> {
    ask(&mut case);
    case
}

#[library_benchmark(setup = refuted)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_refuted(mut case: Box<Case>) -> Box<Case> {
    ask(&mut case);
    case
}

#[library_benchmark(setup = miss)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_miss(mut case: Box<Case>) -> Box<Case> {
    ask(&mut case);
    case
}

#[library_benchmark(setup = hit)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_hit_many(mut case: Box<Case>) -> Box<Case> {
    ask_many(&mut case);
    case
}

#[library_benchmark(setup = miss)]
#[bench::none(0)]
#[bench::thousand(1000)]
#[bench::million(1_000_000)]
fn corrected_miss_many(mut case: Box<Case>) -> Box<Case> {
    ask_many(&mut case);
    case
}

library_benchmark_group!(
    name = corrections,
    benchmarks =
        [corrected_hit, corrected_refuted, corrected_miss, corrected_hit_many, corrected_miss_many]
);

main!(config = config(), library_benchmark_groups = corrections);
