//! The public API of the map. `model.rs` compares it with std's, `thresholds.rs` measures how full
//! it gets, and `hostile.rs` tries hostile hashers, keys and closures.

mod hostile;
mod model;
mod thresholds;

use std::hash::{BuildHasher, Hasher};

use koel_map::CuckooMap;
use testkit::keys::splitmix64;

/// Hashers for `u64` keys, from the best to the worst. All are deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hashing {
    /// SplitMix64.
    Uniform,
    /// The key itself.
    Identity,
    /// One of this many values.
    OneOf(u64),
}

struct State(Hashing, u64);

impl BuildHasher for Hashing {
    type Hasher = State;

    fn build_hasher(&self) -> State {
        State(*self, 0)
    }
}

impl Hasher for State {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are one u64");
    }

    fn write_u64(&mut self, word: u64) {
        self.1 = word;
    }

    fn finish(&self) -> u64 {
        match self.0 {
            Hashing::Uniform => splitmix64(self.1),
            Hashing::Identity => self.1,
            Hashing::OneOf(values) => self.1 % values,
        }
    }
}

/// Checks what holds for every map: its length is the sum of its parts, and it finds every entry
/// that it lists.
fn assert_sound<V, S: BuildHasher, const HASHES: usize, const SLOTS: usize>(
    map: &CuckooMap<u64, V, S, HASHES, SLOTS>,
) {
    assert_eq!(map.iter().count(), map.len());
    assert_eq!(map.iter().size_hint(), (map.len(), Some(map.len())));
    assert!(map.iter().all(|(key, value)| map.get(key).is_some_and(|v| std::ptr::eq(v, value))));
    assert!(map.len() <= map.slots() + map.overflow_len());
}
