//! What both programs of instruction counts share: sizes, seeds, and how Callgrind is run.

use gungraun::{Callgrind, LibraryBenchmarkConfig};
use testkit::keys::{by_chance, hashes};

/// Keys of the filters, which stay in the caches: their misses are not counted anyway.
pub(crate) const CAPACITY: u64 = 50_000;
/// Keys of one measurement.
pub(crate) const KEYS: usize = 4096;

/// Seeds of the streams of hashes: those that fill the filter, and others.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const ABSENT: u64 = 2;
const COIN: u64 = 3;

/// Keys of which each was inserted or not, by chance.
pub(crate) fn unknown() -> Vec<u64> {
    let [present, absent] = [PRESENT, ABSENT].map(|seed| hashes(seed, KEYS as u64));
    by_chance(COIN, present, absent).collect()
}

/// Instructions alone: the simulated caches would take as long again.
pub(crate) fn config() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no"]));
    config
}

/// For questions whose answers cannot be guessed, and so must not be branched upon: with the conditional branches that the simulated processor guesses wrong, of which
/// `instructions-gate` allows one in fifty questions.
pub(crate) fn without_branches() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no", "--branch-sim=yes"]));
    config
}
