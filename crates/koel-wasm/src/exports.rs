//! The functions that filter.js calls. Each passes its arguments to [`Host`].
//!
//! A result is a number: from 0 on it is the answer, below it is a [`Code`], and then the output
//! buffer has the sentence of the error.

use std::cell::RefCell;

use koel::{KeyHasher, Merge};

use crate::failure::{Code, Failure};
use crate::host::{Host, Keys, Settings};

thread_local! {
    /// WebAssembly has one thread.
    static HOST: RefCell<Host> = RefCell::default();
}

/// Runs `work` on the host, and makes a number of its result.
fn answer(work: impl FnOnce(&mut Host) -> Result<i32, Failure>) -> i32 {
    HOST.with_borrow_mut(|host| {
        work(host).unwrap_or_else(|failure| {
            let code = failure.code;
            host.put_error(failure);
            code as i32
        })
    })
}

/// Runs `work`, whose result is a handle.
fn handle(work: impl FnOnce(&mut Host) -> Result<u32, Failure>) -> i32 {
    answer(|host| {
        let full = || Failure { code: Code::Memory, message: "too many filters".to_owned() };
        i32::try_from(work(host)?).map_err(|_| full())
    })
}

/// Runs `work`, whose result may be beyond 32 bits or have a fraction.
fn figure(work: impl FnOnce(&Host) -> Result<f64, Failure>) -> f64 {
    let mut figure = 0.0;
    let code = answer(|host| {
        figure = work(host)?;
        Ok(0)
    });
    if code < 0 { f64::from(code) } else { figure }
}

/// A figure of a filter.
fn figure_of(filter: u32, read: impl FnOnce(&koel::CuckooFilter) -> f64) -> f64 {
    figure(|host| host.filter(filter).map(read))
}

/// The keys of a batch: 0 for texts, 1 for integers.
fn keys(kind: u32, count: u32) -> Keys {
    let count = count as usize;
    if kind == 0 { Keys::Texts(count) } else { Keys::Integers(count) }
}

/// The address of an input buffer of at least so many bytes; 0 if there is no memory for it.
#[unsafe(no_mangle)]
pub extern "C" fn koel_input(len: usize) -> usize {
    HOST.with_borrow_mut(|host| host.input(len).map_or(0, |input| input.as_ptr().addr()))
}

/// The address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output() -> usize {
    HOST.with_borrow(|host| host.output().as_ptr().addr())
}

/// The number of bytes of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output_len() -> usize {
    HOST.with_borrow(|host| host.output().len())
}

/// Frees the input buffer and the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_clear_buffers() {
    HOST.with_borrow_mut(Host::clear_buffers);
}

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

/// The filter whose file image is in the first `len` bytes of the input.
#[unsafe(no_mangle)]
pub extern "C" fn koel_open(len: usize) -> i32 {
    handle(|host| host.open(len))
}

/// Outputs the file image.
#[unsafe(no_mangle)]
pub extern "C" fn koel_image(filter: u32) -> i32 {
    answer(|host| host.image(filter).map(|()| 0))
}

/// Frees a filter.
#[unsafe(no_mangle)]
pub extern "C" fn koel_free(filter: u32) {
    HOST.with_borrow_mut(|host| host.free(filter));
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

/// 1 if such a key is in, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_has(filter: u32, len: usize) -> i32 {
    answer(|host| host.has(filter, len).map(i32::from))
}

/// 1 if the host of such a URL or one of its parent domains is in, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_has_url(filter: u32, len: usize) -> i32 {
    answer(|host| host.has_url(filter, len).map(i32::from))
}

/// Outputs the options of lines that the filter was built with. 1 if each text is its own key.
#[unsafe(no_mangle)]
pub extern "C" fn koel_line_options(filter: u32) -> i32 {
    answer(|host| host.line_options(filter).map(i32::from))
}

/// 1 if a copy of such a key was removed, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn koel_delete(filter: u32, len: usize) -> i32 {
    answer(|host| host.delete(filter, len).map(i32::from))
}

/// How often such a key was added.
#[unsafe(no_mangle)]
pub extern "C" fn koel_count(filter: u32, len: usize) -> f64 {
    figure(|host| host.count(filter, len).map(|count| count as f64))
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
    HOST.with_borrow(Host::done)
}

/// Outputs a byte for each of these: whether it was added.
#[unsafe(no_mangle)]
pub extern "C" fn koel_put_added() {
    HOST.with_borrow_mut(Host::put_added);
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

/// The filter that the patch in the first `len` bytes of the input makes of this one.
#[unsafe(no_mangle)]
pub extern "C" fn koel_patched(filter: u32, len: usize) -> i32 {
    handle(|host| host.patched(filter, len))
}

/// Outputs a byte for each key of a batch: whether it is in.
#[unsafe(no_mangle)]
pub extern "C" fn koel_has_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.has_many(filter, keys(kind, count)).map(|()| 0))
}

/// Outputs a byte for each key of a batch: whether it was removed.
#[unsafe(no_mangle)]
pub extern "C" fn koel_delete_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.delete_many(filter, keys(kind, count)).map(|()| 0))
}

/// Outputs the count of each key of a batch, as eight bytes.
#[unsafe(no_mangle)]
pub extern "C" fn koel_count_many(filter: u32, kind: u32, count: u32) -> i32 {
    answer(|host| host.count_many(filter, keys(kind, count)).map(|()| 0))
}

/// Keys in the filter, with copies.
#[unsafe(no_mangle)]
pub extern "C" fn koel_len(filter: u32) -> f64 {
    figure_of(filter, |filter| filter.len() as f64)
}

/// Corrections.
#[unsafe(no_mangle)]
pub extern "C" fn koel_corrections(filter: u32) -> f64 {
    figure_of(filter, |filter| filter.corrections() as f64)
}

/// Distinct keys that it was built for.
#[unsafe(no_mangle)]
pub extern "C" fn koel_capacity(filter: u32) -> f64 {
    figure_of(filter, |filter| filter.capacity() as f64)
}

/// The false-positive rate that it was built for.
#[unsafe(no_mangle)]
pub extern "C" fn koel_error_rate(filter: u32) -> f64 {
    figure_of(filter, koel::CuckooFilter::requested_false_positive_rate)
}

/// The false-positive rate as the filter is now.
#[unsafe(no_mangle)]
pub extern "C" fn koel_current_error_rate(filter: u32) -> f64 {
    figure_of(filter, koel::CuckooFilter::false_positive_rate)
}

/// The share of slots in use.
#[unsafe(no_mangle)]
pub extern "C" fn koel_load_factor(filter: u32) -> f64 {
    figure_of(filter, koel::CuckooFilter::load_factor)
}

/// Bytes of the file image.
#[unsafe(no_mangle)]
pub extern "C" fn koel_byte_length(filter: u32) -> f64 {
    figure_of(filter, |filter| filter.size_in_bytes() as f64)
}

/// 1 if the filter grows instead of refusing keys.
#[unsafe(no_mangle)]
pub extern "C" fn koel_growable(filter: u32) -> f64 {
    figure_of(filter, |filter| f64::from(u8::from(filter.is_growable())))
}

/// The empty filter of the picture: a dozen buckets, built for this capacity and rate, with
/// fingerprints of so many bits.
#[cfg(feature = "page")]
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
#[cfg(feature = "page")]
#[unsafe(no_mangle)]
pub extern "C" fn koel_locate(filter: u32, len: usize) -> i32 {
    answer(|host| host.locate(filter, len).map(|()| 0))
}

/// Outputs the rows of `koel plan` as JSON. The figure to compute is 0.
#[cfg(feature = "page")]
#[unsafe(no_mangle)]
pub extern "C" fn koel_plan_rows(keys: u64, error_rate: f64, memory: u64) -> i32 {
    answer(|host| host.plan(keys, error_rate, memory).map(|()| 0))
}

/// Outputs what the list in the first `len` bytes of the input looks like, as JSON.
#[cfg(feature = "page")]
#[unsafe(no_mangle)]
pub extern "C" fn koel_likeness(len: usize) -> i32 {
    answer(|host| host.likeness(len).map(|()| 0))
}
