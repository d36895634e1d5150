//! Random numbers for salts and seeds.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a random number. `RandomState` has random keys, which differ from call to call.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
