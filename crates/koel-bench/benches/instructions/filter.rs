//! Instruction counts of the library's hot paths, under Callgrind.
//!
//! Unlike a time, a count is the same in every run, so a change of a few percent is visible on a
//! busy machine. Counts do not show the memory: a cache miss costs no instruction.
//! `scripts/instructions` runs these benches and those of `faces.rs`, `keys.rs`, `whole.rs` and
//! `corrections.rs`, and compares them with counts.txt.
//!
//! * Only the body of each function below is counted, not its setup, nor the drop of its result.
//!   Cases are boxed, so that moving them adds nothing.
//! * Keys are ready hashes that the filters trust. Only `hash` and `keys.rs` count the hash.
//! * The counts depend on the compiler, which is recorded with them, and hardly on the machine:
//!   Valgrind simulates the same processor everywhere, with AVX2 and without AVX-512.
//! * The C library (`memset` and `malloc`) accounts for at most 5 %, and for 11 % of the few
//!   instructions of `open`.
//! * This program uses the fixed filter only, since the rest of a program influences what the
//!   compiler inlines: together with the other types, single inserts took a tenth more.

#![expect(missing_docs, reason = "the macros of the harness make public items")]

mod shared;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use koel::{CuckooFilter, FilterView, KeyHash, KeyHasher, Prefer};
use shared::{ABSENT, CAPACITY, Case, KEYS, PRESENT, config, keys, unknown, without_branches};
use testkit::keys::hashes;

// ---- setups

fn empty(prefer: Prefer) -> CuckooFilter {
    let (rate, layout) = match prefer {
        Prefer::Fast => (0.002, "plain 4x12"),
        Prefer::Small => (0.001, "semi-sorted 4x13"),
    };
    let builder = CuckooFilter::builder(CAPACITY, rate).prefer(prefer).trust_hashes();
    let filter = builder.build().expect("a filter");
    assert_eq!(filter.layout().to_string(), layout, "the counts are named after this layout");
    filter
}

/// As many keys as fill this percentage of the slots of `filter`, which is empty.
fn keys_to(filter: &CuckooFilter, per_cent: u64) -> Vec<KeyHash> {
    keys(PRESENT, filter.slots() * per_cent / 100)
}

/// A filter with this percentage of its slots in use, and the keys in it.
fn filled(prefer: Prefer, per_cent: u64) -> (CuckooFilter, Vec<KeyHash>) {
    let mut filter = empty(prefer);
    let keys = keys_to(&filter, per_cent);
    filter.insert_many(&keys).expect("room below the design load");
    (filter, keys)
}

/// Present keys of a filter at 95 %.
fn present(prefer: Prefer) -> Box<Filled> {
    let (filter, mut keys) = filled(prefer, 95);
    keys.truncate(KEYS);
    Case::new(filter, keys)
}

/// Absent keys.
fn absent(prefer: Prefer) -> Box<Filled> {
    Case::new(filled(prefer, 95).0, keys(ABSENT, KEYS as u64))
}

/// Keys for a filter at 95 %; every second key is present.
fn mixed(prefer: Prefer) -> Box<Filled> {
    let (filter, present) = filled(prefer, 95);
    let pairs = present.into_iter().zip(keys(ABSENT, KEYS as u64 / 2));
    Case::new(filter, pairs.flat_map(|(present, absent)| [present, absent]).collect())
}

/// Present and absent keys in random order, for a filter at 95 %.
fn some_present(prefer: Prefer) -> Box<Filled> {
    Case::new(filled(prefer, 95).0, unknown().into_iter().map(KeyHash::new).collect())
}

/// Keys for a filter at 50 %.
fn coming(prefer: Prefer) -> Box<Filled> {
    Case::new(filled(prefer, 50).0, keys(ABSENT, KEYS as u64))
}

/// The keys that take a filter from 93 % to 95 %.
fn last(prefer: Prefer) -> Box<Filled> {
    let (filter, before) = filled(prefer, 93);
    let last = keys_to(&filter, 95).split_off(before.len());
    Case::new(filter, last)
}

/// The keys that take an empty filter to 95 %.
fn all(prefer: Prefer) -> Box<Filled> {
    let filter = empty(prefer);
    let all = keys_to(&filter, 95);
    Case::new(filter, all)
}

/// Names of 13 to 16 bytes.
fn names() -> Vec<String> {
    (0..KEYS).map(|number| format!("{number}.example.org")).collect()
}

/// The bytes of a filter of a thousand keys.
fn image() -> Box<[u8]> {
    let mut filter = CuckooFilter::with_capacity(1000);
    filter.insert_many(&hashes(PRESENT, 1000).collect::<Vec<_>>()).expect("room");
    filter.to_bytes().into_boxed_slice()
}

// ---- benches

type Filled = Case<CuckooFilter>;

#[library_benchmark(setup = present)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn contains_hit(case: Box<Filled>) -> Box<Filled> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = absent)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn contains_miss(case: Box<Filled>) -> Box<Filled> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = mixed)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn contains_many(case: Box<Filled>) -> Box<Filled> {
    case.ask_many(|filter, keys, found| filter.contains_many(keys, found))
}

#[library_benchmark(setup = some_present, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn contains_unknown(case: Box<Filled>) -> Box<Filled> {
    case.ask(|filter, key| filter.contains(key))
}

#[library_benchmark(setup = some_present, config = without_branches())]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn contains_counted(case: Box<Filled>) -> Box<Filled> {
    case.count(CuckooFilter::contains)
}

#[library_benchmark(setup = coming)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn insert_half_full(case: Box<Filled>) -> Box<Filled> {
    case.each(|filter, key| filter.insert(key).expect("room"))
}

#[library_benchmark(setup = last)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn insert_nearly_full(case: Box<Filled>) -> Box<Filled> {
    case.each(|filter, key| filter.insert(key).expect("room"))
}

#[library_benchmark(setup = coming)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn insert_many(case: Box<Filled>) -> Box<Filled> {
    case.ask_many(|filter, keys, _| filter.insert_many(keys).expect("room"))
}

#[library_benchmark(setup = all)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn fill_many(case: Box<Filled>) -> Box<Filled> {
    case.ask_many(|filter, keys, _| filter.insert_many(keys).expect("room"))
}

#[library_benchmark(setup = present)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn remove(case: Box<Filled>) -> Box<Filled> {
    case.ask(|filter, key| filter.remove(key))
}

#[library_benchmark(setup = present)]
#[bench::fast(Prefer::Fast)]
#[bench::small(Prefer::Small)]
fn remove_many(case: Box<Filled>) -> Box<Filled> {
    case.ask_many(|filter, keys, removed| filter.remove_many(keys, removed))
}

#[library_benchmark]
#[bench::names(names())]
fn hash(names: Vec<String>) -> Vec<String> {
    // Not a constant, as in a filter.
    let hasher = black_box(KeyHasher::default());
    for name in &names {
        black_box(hasher.hash(name.as_str()));
    }
    names
}

#[library_benchmark]
#[bench::small(image())]
fn open(image: Box<[u8]>) -> Box<[u8]> {
    black_box(&FilterView::open(&image).expect("a sound image"));
    image
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [
        contains_hit,
        contains_miss,
        contains_many,
        contains_unknown,
        contains_counted,
        insert_half_full,
        insert_nearly_full,
        insert_many,
        fill_many,
        remove,
        remove_many,
        hash,
        open,
    ]
);

main!(config = config(), library_benchmark_groups = hot_paths);
