//! What the programs share: sizes, seeds, and how Callgrind is run.

use gungraun::{Callgrind, LibraryBenchmarkConfig};
use testkit::keys::{by_chance, hashes};

/// The number of keys of a filter. It fits the caches, whose misses are not counted anyway.
pub(crate) const CAPACITY: u64 = 50_000;
/// The number of keys of one measurement.
pub(crate) const KEYS: usize = 4096;

/// Seeds of the hash streams: those that fill the filter, and others.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const ABSENT: u64 = 2;
const COIN: u64 = 3;

/// Keys of which each was inserted or not, at random.
pub(crate) fn unknown() -> Vec<u64> {
    let [present, absent] = [PRESENT, ABSENT].map(|seed| hashes(seed, KEYS as u64));
    by_chance(COIN, present, absent).collect()
}

/// Counts instructions only: simulated caches would double the time.
pub(crate) fn config() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no"]));
    config
}

/// For lookups with unpredictable answers, on which the code must not branch. Also counts the
/// conditional branches that the simulated processor mispredicts, of which `instructions-gate`
/// allows one in fifty lookups.
pub(crate) fn without_branches() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no", "--branch-sim=yes"]));
    config
}
