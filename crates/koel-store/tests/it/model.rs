//! Random programs under random options, compared with a `BTreeMap` and its earlier versions.

use std::sync::Arc;

use koel_store::LogStore;
use testkit::storage::{History, MemoryFolder, Random};

use crate::subject::{Subject, Trial};
use crate::trial::{count, first_seed, report};

const OPERATIONS: u64 = 2_500;

fn run<S: Subject>(seed: u64) {
    let mut random = Random::new(seed);
    let keys = [1, 12, 60, 400, 5_000][random.below(5)];
    let longest = if random.chance(20) { 100_000 } else { 3_000 };
    let mut program = S::program(seed, keys, longest);
    let folder = Arc::new(MemoryFolder::new());
    let options = if seed.is_multiple_of(4) { S::threaded(seed) } else { S::small(seed) };
    let mut trial = Trial::<S>::open(folder, &options, &program, History::new()).unwrap();
    for _ in 0..OPERATIONS {
        let op = program.next().expect("a program is endless");
        trial.step(op).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    trial.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

/// Compares a store with the model for so many operations.
pub(crate) fn model<S: Subject>(operations: u64) {
    let programs = operations.div_ceil(OPERATIONS);
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        println!("seed {seed}");
        run::<S>(seed);
    }
    let name = format!("{}model", S::PREFIX);
    report(&name, &format!("{} operations: 0 differences", programs * OPERATIONS));
}

#[test]
fn a_store_behaves_like_a_map() {
    model::<LogStore>(count(250_000, 2_000_000));
}
