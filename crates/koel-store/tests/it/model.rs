//! Random programs under random options, compared with a `BTreeMap`.

use std::sync::Arc;

use koel_store::Options;
use testkit::storage::{History, MemoryFolder, Program, Random};

use crate::trial::{Trial, count, first_seed, report, small};

const OPERATIONS: u64 = 2_500;

/// As in the crash trials, sometimes with background threads, and with an index that grows early,
/// late or never.
fn options(seed: u64) -> Options {
    let options = small(seed).expected_keys([0, 100, 10_000][Random::new(seed).below(3)]);
    if seed.is_multiple_of(4) {
        options.background_compaction(true).bytes_per_sync(2048)
    } else {
        options
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let keys = [1, 12, 60, 400, 5_000][random.below(5)];
    let mut program = Program::new(seed, keys, 30_000);
    let folder = Arc::new(MemoryFolder::new());
    let mut trial = Trial::open(folder, &options(seed), &program, History::new()).unwrap();
    for _ in 0..OPERATIONS {
        let op = program.next().expect("a program is endless");
        trial.step(op).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    trial.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

#[test]
fn a_store_behaves_like_a_map() {
    let operations = count(250_000, 2_000_000);
    let programs = operations.div_ceil(OPERATIONS);
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        println!("seed {seed}");
        run(seed);
    }
    report("model", &format!("{} operations: 0 differences", programs * OPERATIONS));
}
