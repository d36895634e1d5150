//! What both programs of instruction counts share: sizes, seeds, and how Callgrind is run.

use gungraun::{Callgrind, LibraryBenchmarkConfig};

/// Keys of the filters, which stay in the caches: their misses are not counted anyway.
pub(crate) const CAPACITY: u64 = 50_000;
/// Keys of one measurement.
pub(crate) const KEYS: usize = 4096;

/// Seeds of the streams of hashes: those that fill the filter, and others.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const ABSENT: u64 = 2;

/// Instructions alone: the simulated caches would take as long again.
pub(crate) fn config() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no"]));
    config
}
