//! Instruction counts of operations on whole filters. See `filter.rs`.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

#[expect(dead_code, reason = "nothing is looked up here")]
mod shared;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{Builder, CuckooFilter, Merge, Prefer};
use shared::{ABSENT, CAPACITY, PRESENT, config, keys};

/// Two filters that have half of the first one's keys in common, and a result.
struct Pair {
    one: CuckooFilter,
    other: CuckooFilter,
    bytes: Vec<u8>,
    result: Option<CuckooFilter>,
}

// ---- setups

fn builder(capacity: u64, prefer: Prefer) -> Builder<CuckooFilter> {
    let rate = if prefer == Prefer::Fast { 0.002 } else { 0.001 };
    CuckooFilter::builder(capacity, rate).prefer(prefer).trust_hashes()
}

fn pair_of(builder: &Builder<CuckooFilter>) -> Box<Pair> {
    let half = CAPACITY / 2;
    let (first, second) = (keys(PRESENT, half), keys(ABSENT, half / 2));
    let filter = |hashes: &[_]| {
        let mut filter = builder.build().expect("a filter");
        filter.insert_many(hashes).expect("room for the capacity");
        filter
    };
    let (one, other) = (filter(&first), filter(&[&first[..first.len() / 2], &second].concat()));
    Box::new(Pair { one, other, bytes: Vec::new(), result: None })
}

fn pair(prefer: Prefer) -> Box<Pair> {
    pair_of(&builder(CAPACITY, prefer))
}

fn grown(prefer: Prefer) -> Box<Pair> {
    pair_of(&builder(1000, prefer).growable())
}

fn with_patch(prefer: Prefer) -> Box<Pair> {
    let mut pair = pair(prefer);
    pair.bytes = pair.one.patch_to(&pair.other).expect("filters of one shape");
    pair
}

fn with_image(prefer: Prefer) -> Box<Pair> {
    let mut pair = pair(prefer);
    pair.bytes = pair.one.to_bytes();
    pair
}

// ---- benches

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn merge(pair: Box<Pair>) -> Box<Pair> {
    merged(pair, Merge::Max)
}

#[library_benchmark(setup = pair)]
#[bench::small(Prefer::Small)]
fn merge_sum(pair: Box<Pair>) -> Box<Pair> {
    merged(pair, Merge::Sum)
}

#[library_benchmark(setup = grown)]
#[bench::small(Prefer::Small)]
fn merge_grown(pair: Box<Pair>) -> Box<Pair> {
    merged(pair, Merge::Max)
}

fn merged(mut pair: Box<Pair>, counts: Merge) -> Box<Pair> {
    let Pair { one, other, .. } = &mut *pair;
    one.merge(other, counts).expect("room for the union");
    pair
}

#[library_benchmark(setup = pair)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn compare(pair: Box<Pair>) -> Box<Pair> {
    black_box(pair.one.compare(&pair.other).expect("filters of one shape"));
    pair
}

#[library_benchmark(setup = grown)]
#[bench::small(Prefer::Small)]
fn compare_grown(pair: Box<Pair>) -> Box<Pair> {
    black_box(pair.one.compare(&pair.other).expect("filters of one shape"));
    pair
}

#[library_benchmark(setup = pair)]
#[bench::small(Prefer::Small)]
fn patch_to(mut pair: Box<Pair>) -> Box<Pair> {
    pair.bytes = pair.one.patch_to(&pair.other).expect("filters of one shape");
    pair
}

#[library_benchmark(setup = with_patch)]
#[bench::small(Prefer::Small)]
fn patched(mut pair: Box<Pair>) -> Box<Pair> {
    pair.result = Some(pair.one.patched(&pair.bytes).expect("a patch for this filter"));
    pair
}

#[library_benchmark(setup = with_image)]
#[bench::small(Prefer::Small)]
fn from_bytes(mut pair: Box<Pair>) -> Box<Pair> {
    pair.result = Some(CuckooFilter::from_bytes(&pair.bytes).expect("a sound image"));
    pair
}

library_benchmark_group!(
    name = whole,
    benchmarks =
        [merge, merge_sum, merge_grown, compare, compare_grown, patch_to, patched, from_bytes,]
);

main!(config = config(), library_benchmark_groups = whole);
