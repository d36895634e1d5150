//! The functions of the page.

use koel::KeyHasher;

use super::{answer, handle};
use crate::host::Settings;

/// The empty filter of the picture: a dozen buckets, built for this capacity and rate, with
/// fingerprints of so many bits.
#[unsafe(no_mangle)]
pub extern "C" fn koel_build_small(
    capacity: u64,
    error_rate: f64,
    bits: u32,
    growable: u32,
) -> i32 {
    let (seed, secret) = (KeyHasher::DEFAULT_SEED, None);
    let (growable, grow_from, fast) = (growable != 0, 0, true);
    let settings = Settings { capacity, error_rate, grow_from, growable, fast, seed, secret };
    handle(|host| host.build_small(&settings, 12, u8::try_from(bits).unwrap_or(u8::MAX)))
}

/// Outputs the buckets and slots of the key in the first `len` bytes of the input, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn koel_locate(filter: u32, len: usize) -> i32 {
    answer(|host| host.locate(filter, len).map(|()| 0))
}

/// Outputs the rows of `koel plan` as JSON. The figure to compute is 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_plan_rows(keys: u64, error_rate: f64, memory: u64) -> i32 {
    answer(|host| host.plan(keys, error_rate, memory).map(|()| 0))
}

/// Outputs what the list in the first `len` bytes of the input looks like, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn koel_likeness(len: usize) -> i32 {
    answer(|host| host.likeness(len).map(|()| 0))
}
