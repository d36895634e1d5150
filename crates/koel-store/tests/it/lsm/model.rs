//! Random programs under random options, compared with a `BTreeMap` and its earlier versions.

use std::sync::Arc;

use testkit::storage::{History, MemoryFolder, OrderedProgram, Random};

use super::trial::{OrderedTrial, small, threaded};
use crate::trial::{count, first_seed, report};

const OPERATIONS: u64 = 2_500;

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let keys = [1, 12, 60, 400, 5_000][random.below(5)];
    let longest = if random.chance(20) { 100_000 } else { 3_000 };
    let mut program = OrderedProgram::new(seed, keys, longest);
    let folder = Arc::new(MemoryFolder::new());
    let options = if seed.is_multiple_of(4) { threaded(seed) } else { small(seed) };
    let mut trial = OrderedTrial::open(folder, &options, &program, History::new()).unwrap();
    for _ in 0..OPERATIONS {
        let op = program.next().expect("a program is endless");
        trial.step(op).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    trial.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

#[test]
fn an_ordered_store_behaves_like_a_sorted_map() {
    let operations = count(100_000, 1_000_000);
    let programs = operations.div_ceil(OPERATIONS);
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        println!("seed {seed}");
        run(seed);
    }
    report("ordered model", &format!("{} operations: 0 differences", programs * OPERATIONS));
}
