//! Instruction counts of lookups of keys that the filter hashes itself, and of counts. See
//! `filter.rs`.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

#[expect(dead_code, reason = "keys are not hashed here before they are counted")]
mod shared;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{ConcurrentFilter, CuckooFilter, KeyHash, Prefer};
use shared::{CAPACITY, KEYS, PRESENT, config, unknown, without_branches};
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

/// A filter, and keys to count in it.
struct Counted {
    filter: CuckooFilter,
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

/// A filter that is half full.
fn counted(prefer: Prefer) -> Box<Counted> {
    let rate = if prefer == Prefer::Fast { 0.002 } else { 0.001 };
    let builder = CuckooFilter::builder(CAPACITY, rate).prefer(prefer).trust_hashes();
    let mut filter = builder.build().expect("a filter");
    filter.insert_many(&shared::keys(PRESENT, CAPACITY / 2)).expect("room for the capacity");
    let hashes = unknown().into_iter().map(KeyHash::new).collect();
    Box::new(Counted { filter, hashes, counts: vec![0; KEYS] })
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

#[library_benchmark(setup = counted)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn count(mut case: Box<Counted>) -> Box<Counted> {
    let Counted { filter, hashes, counts } = &mut *case;
    for (count, hash) in counts.iter_mut().zip(hashes) {
        *count = filter.count(hash);
    }
    case
}

#[library_benchmark(setup = counted)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn count_many(mut case: Box<Counted>) -> Box<Counted> {
    let Counted { filter, hashes, counts } = &mut *case;
    filter.count_many(hashes, counts);
    case
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
    ]
);

main!(config = config(), library_benchmark_groups = keys);
