//! Instruction counts of lookups of keys that the filter hashes itself, and of the operations on
//! whole filters: counts, merges and comparisons. See `filter.rs`.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

#[expect(dead_code, reason = "keys are not hashed here before they are counted")]
mod shared;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{ConcurrentFilter, CuckooFilter, KeyHash, Merge, Prefer};
use shared::{ABSENT, CAPACITY, KEYS, PRESENT, config, keys, unknown, without_branches};
use testkit::keys::hashes;

/// Keys of one type.
enum Keys {
    /// Text of 16 bytes.
    Names(Vec<String>),
    /// Integers of eight bytes.
    Numbers(Vec<u64>),
}

fn names(hashes: Vec<u64>) -> Keys {
    Keys::Names(hashes.into_iter().map(|hash| format!("{hash:016x}")).collect())
}

/// Evaluates an expression for keys of either type.
macro_rules! for_keys {
    ($keys:expr, $name:ident => $work:expr) => {
        match $keys {
            Keys::Names($name) => $work,
            Keys::Numbers($name) => $work,
        }
    };
}

/// A filter, and the keys to look up.
struct Case<T> {
    filter: T,
    keys: Keys,
    answers: Vec<bool>,
}

impl<T> Case<T> {
    fn new(filter: T, keys: Keys) -> Box<Self> {
        Box::new(Self { filter, keys, answers: vec![false; KEYS] })
    }
}

/// Two filters that have half of their keys in common, and keys to count in the first.
struct Pair {
    one: CuckooFilter,
    other: CuckooFilter,
    hashes: Vec<KeyHash>,
    counts: Vec<u64>,
}

// ---- setups

/// A full filter, and keys; some of them are present.
fn plain(keys: fn(Vec<u64>) -> Keys) -> Box<Case<CuckooFilter>> {
    let mut filter = CuckooFilter::builder(CAPACITY, 0.002).build().expect("a filter");
    let present = keys(hashes(PRESENT, CAPACITY).collect());
    for_keys!(&present, present => filter.insert_many(present)).expect("room for the capacity");
    Case::new(filter, keys(unknown()))
}

/// As `plain`, with a filter that threads share.
fn concurrent(keys: fn(Vec<u64>) -> Keys) -> Box<Case<ConcurrentFilter>> {
    let filter = ConcurrentFilter::builder(CAPACITY, 0.001).build().expect("a filter");
    let present = keys(hashes(PRESENT, CAPACITY).collect());
    for_keys!(&present, present => filter.insert_many(present)).expect("room for the capacity");
    Case::new(filter, keys(unknown()))
}

fn pair(prefer: Prefer) -> Box<Pair> {
    let rate = if prefer == Prefer::Fast { 0.002 } else { 0.001 };
    let builder = CuckooFilter::builder(CAPACITY, rate).prefer(prefer).trust_hashes();
    let of = |hashes: &[KeyHash]| {
        let mut filter = builder.build().expect("a filter");
        filter.insert_many(hashes).expect("room for the capacity");
        filter
    };
    let half = CAPACITY / 2;
    let (first, second) = (keys(PRESENT, half), keys(ABSENT, half / 2));
    let (one, other) = (of(&first), of(&[&first[..first.len() / 2], &second].concat()));
    let hashes = unknown().into_iter().map(KeyHash::new).collect();
    Box::new(Pair { one, other, hashes, counts: vec![0; KEYS] })
}

// ---- benches

#[library_benchmark(setup = plain, config = without_branches())]
#[bench::name(names)]
#[bench::number(Keys::Numbers)]
fn contains_key(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    let Case { filter, keys, answers } = &mut *case;
    for_keys!(keys, keys => {
        for (answer, key) in answers.iter_mut().zip(keys) {
            *answer = filter.contains(key);
        }
    });
    case
}

#[library_benchmark(setup = plain)]
#[bench::name(names)]
#[bench::number(Keys::Numbers)]
fn contains_key_many(mut case: Box<Case<CuckooFilter>>) -> Box<Case<CuckooFilter>> {
    let Case { filter, keys, answers } = &mut *case;
    for_keys!(keys, keys => filter.contains_many(keys, answers));
    case
}

#[library_benchmark(setup = concurrent, config = without_branches())]
#[bench::name(names)]
#[bench::number(Keys::Numbers)]
fn concurrent_contains_key(mut case: Box<Case<ConcurrentFilter>>) -> Box<Case<ConcurrentFilter>> {
    let Case { filter, keys, answers } = &mut *case;
    for_keys!(keys, keys => {
        for (answer, key) in answers.iter_mut().zip(keys) {
            *answer = filter.contains(key);
        }
    });
    case
}

#[library_benchmark(setup = concurrent)]
#[bench::name(names)]
#[bench::number(Keys::Numbers)]
fn concurrent_contains_key_many(
    mut case: Box<Case<ConcurrentFilter>>,
) -> Box<Case<ConcurrentFilter>> {
    let Case { filter, keys, answers } = &mut *case;
    for_keys!(keys, keys => filter.contains_many(keys, answers));
    case
}

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn count(mut pair: Box<Pair>) -> Box<Pair> {
    for (count, hash) in pair.counts.iter_mut().zip(&pair.hashes) {
        *count = pair.one.count(hash);
    }
    pair
}

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn count_many(mut pair: Box<Pair>) -> Box<Pair> {
    let Pair { one, hashes, counts, .. } = &mut *pair;
    one.count_many(hashes, counts);
    pair
}

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn merge(mut pair: Box<Pair>) -> Box<Pair> {
    let Pair { one, other, .. } = &mut *pair;
    one.merge(other, Merge::Max).expect("room for the union");
    pair
}

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn compare(pair: Box<Pair>) -> Box<Pair> {
    black_box(pair.one.compare(&pair.other).expect("filters of one shape"));
    pair
}

library_benchmark_group!(
    name = keys,
    benchmarks = [
        contains_key,
        contains_key_many,
        concurrent_contains_key,
        concurrent_contains_key_many,
        count,
        count_many,
        merge,
        compare,
    ]
);

main!(config = config(), library_benchmark_groups = keys);
