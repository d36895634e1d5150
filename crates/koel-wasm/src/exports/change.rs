//! The functions that build and change filters.

use koel::{KeyHasher, Merge};

use super::{answer, handle, keys};
use crate::host::{Host, Settings};
use crate::program::with_host;

/// The seed that a filter has unless another one is given.
#[unsafe(no_mangle)]
pub extern "C" fn koel_default_seed() -> u64 {
    KeyHasher::DEFAULT_SEED
}

/// A new filter: see [`Settings`]. With `secret`, the first 16 bytes of the input are its secret.
#[unsafe(no_mangle)]
pub extern "C" fn koel_build(
    capacity: u64,
    error_rate: f64,
    grow_from: u64,
    growable: u32,
    fast: u32,
    seed: u64,
    secret: u32,
) -> i32 {
    let (growable, fast) = (growable != 0, fast != 0);
    let read_secret = |host: &mut Host| {
        let input = host.input(16).ok()?;
        input.first_chunk().copied()
    };
    handle(|host| {
        let secret = if secret == 0 { None } else { read_secret(host) };
        let settings = Settings { capacity, error_rate, grow_from, growable, fast, seed, secret };
        host.build(&settings)
    })
}

/// Removes every key.
#[unsafe(no_mangle)]
pub extern "C" fn koel_clear(filter: u32) -> i32 {
    answer(|host| {
        host.change(filter)?.0.clear();
        Ok(0)
    })
}

/// Adds the key in the first `len` bytes of the input.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add(filter: u32, len: usize) -> i32 {
    answer(|host| host.add(filter, len).map(|()| 0))
}

/// Adds such a key unless it is in: 1 if it was added, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add_unique(filter: u32, len: usize) -> i32 {
    answer(|host| host.add_unique(filter, len).map(i32::from))
}

/// 1 if a copy of such a key was removed, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_delete(filter: u32, len: usize) -> i32 {
    answer(|host| host.delete(filter, len).map(i32::from))
}

/// Adds a batch.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.add_many(filter, keys(kind, count)).map(|()| 0))
}

/// Adds each key of a batch unless it is in. Outputs a byte for each: whether it was added.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add_unique_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.add_unique_many(filter, keys(kind, count)).map(|()| 0))
}

/// How many keys of the last batch that added are done.
#[unsafe(no_mangle)]
pub extern "C" fn koel_done() -> usize {
    with_host(|host| host.done())
}

/// Outputs a byte for each of these: whether it was added.
#[unsafe(no_mangle)]
pub extern "C" fn koel_put_added() {
    with_host(Host::put_added);
}

/// Adds the keys of the filter `other`: with the sum of both counts, or with the larger one.
#[unsafe(no_mangle)]
pub extern "C" fn koel_merge(filter: u32, other: u32, sums: u32) -> i32 {
    let counts = if sums == 0 { Merge::Max } else { Merge::Sum };
    answer(|host| host.merge(filter, other, counts).map(|()| 0))
}

/// 1 if such a key, which was not added, got a correction, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_refute(filter: u32, len: usize) -> i32 {
    answer(|host| host.refute(filter, len).map(i32::from))
}

/// Outputs the hashes of those keys of a batch that are reported.
#[unsafe(no_mangle)]
pub extern "C" fn koel_reported(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.reported(filter, keys(kind, count)).map(|()| 0))
}

/// Refutes the keys with so many of these hashes in the input, of as many keys as were asked, all
/// or none. With `force` however many they are.
#[unsafe(no_mangle)]
pub extern "C" fn koel_refute_many(filter: u32, count: usize, asked: u64, force: u32) -> i32 {
    let asked = (force == 0).then_some(asked);
    answer(|host| host.refute_many(filter, count, asked).map(|()| 0))
}

/// Outputs the patch that makes the filter `new` of this one.
#[unsafe(no_mangle)]
pub extern "C" fn koel_patch_to(filter: u32, new: u32) -> i32 {
    answer(|host| host.patch_to(filter, new).map(|()| 0))
}

/// Outputs a byte for each key of a batch: whether it was removed.
#[unsafe(no_mangle)]
pub extern "C" fn koel_delete_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.delete_many(filter, keys(kind, count)).map(|()| 0))
}
