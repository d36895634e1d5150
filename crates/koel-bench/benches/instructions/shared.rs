//! What the programs share: sizes, seeds, loops over keys, and how Callgrind is run.

use std::hint::black_box;

use gungraun::{Callgrind, LibraryBenchmarkConfig};
use koel::KeyHash;
use testkit::keys::{by_chance, hashes};

/// The number of keys of a filter. It fits the caches, whose misses are not counted anyway.
pub(crate) const CAPACITY: u64 = 50_000;
/// The number of keys of one measurement.
pub(crate) const KEYS: usize = 4096;

/// Seeds of the hash streams: those that fill the filter, and others.
pub(crate) const PRESENT: u64 = 1;
pub(crate) const ABSENT: u64 = 2;
const COIN: u64 = 3;

/// A filter or another type, and the keys to look up.
pub(crate) struct Case<T> {
    pub(crate) it: T,
    pub(crate) hashes: Vec<KeyHash>,
    pub(crate) answers: Vec<bool>,
}

impl<T> Case<T> {
    pub(crate) fn new(it: T, hashes: Vec<KeyHash>) -> Box<Self> {
        let answers = vec![false; hashes.len()];
        Box::new(Self { it, hashes, answers })
    }

    /// Stores the answer for each key.
    #[inline(always)]
    pub(crate) fn ask(
        mut self: Box<Self>,
        mut has: impl FnMut(&mut T, &KeyHash) -> bool,
    ) -> Box<Self> {
        let Self { it, hashes, answers } = &mut *self;
        for (answer, hash) in answers.iter_mut().zip(&*hashes) {
            *answer = has(it, hash);
        }
        self
    }

    /// Stores the answers for all keys.
    #[inline(always)]
    pub(crate) fn ask_many(
        mut self: Box<Self>,
        has: impl FnOnce(&mut T, &[KeyHash], &mut [bool]),
    ) -> Box<Self> {
        let Self { it, hashes, answers } = &mut *self;
        has(it, hashes, answers);
        self
    }

    /// Counts the keys that are present instead of storing the answers, which the compiler is more
    /// likely to turn into branches.
    #[inline(always)]
    pub(crate) fn count(self: Box<Self>, has: impl Fn(&T, &KeyHash) -> bool) -> Box<Self> {
        black_box(self.hashes.iter().filter(|hash| has(&self.it, hash)).count());
        self
    }

    /// Passes each key to `work`.
    #[inline(always)]
    pub(crate) fn each(mut self: Box<Self>, mut work: impl FnMut(&mut T, &KeyHash)) -> Box<Self> {
        for hash in &self.hashes {
            work(&mut self.it, hash);
        }
        self
    }
}

/// Keys; each was inserted or not, at random.
pub(crate) fn unknown() -> Vec<u64> {
    let [present, absent] = [PRESENT, ABSENT].map(|seed| hashes(seed, KEYS as u64));
    by_chance(COIN, present, absent).collect()
}

/// So many keys of the stream with this seed.
pub(crate) fn keys(seed: u64, count: u64) -> Vec<KeyHash> {
    hashes(seed, count).map(KeyHash::new).collect()
}

/// Counts instructions only: simulated caches would double the time.
pub(crate) fn config() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no"]));
    config
}

/// For lookups with unpredictable answers, on which the code must not branch. Also counts the
/// conditional branches that the simulated processor mispredicts. `instructions-gate` allows one in
/// fifty lookups.
pub(crate) fn without_branches() -> LibraryBenchmarkConfig {
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::with_args(["--cache-sim=no", "--branch-sim=yes"]));
    config
}
