//! The functions that module.js and the classes call. Each passes its arguments to [`Host`].
//!
//! A result is a number: from 0 on it is the answer, below it is a [`Code`], and then the output
//! buffer has the sentence of the error.

#[cfg(feature = "full")]
mod change;
#[cfg(feature = "page")]
mod page;

use alloc::borrow::ToOwned;

#[cfg(feature = "full")]
pub use change::*;
#[cfg(feature = "page")]
pub use page::*;

use crate::failure::{Code, Failure};
use crate::host::{Host, Keys};
use crate::program::with_host;

/// Runs `work` on the host, and makes a number of its result.
fn answer(work: impl FnOnce(&mut Host) -> Result<i32, Failure>) -> i32 {
    with_host(|host| {
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
    with_host(|host| host.input(len).map_or(0, |input| input.as_ptr().addr()))
}

/// The address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output() -> usize {
    with_host(|host| host.output().as_ptr().addr())
}

/// The number of bytes of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output_len() -> usize {
    with_host(|host| host.output().len())
}

/// Frees the input buffer and the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_clear_buffers() {
    with_host(Host::clear_buffers);
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
    with_host(|host| host.free(filter));
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

/// How often such a key was added.
#[unsafe(no_mangle)]
pub extern "C" fn koel_count(filter: u32, len: usize) -> f64 {
    figure(|host| host.count(filter, len).map(|count| count as f64))
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
