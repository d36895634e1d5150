//! The functions that ask filters where they lie.

use koel::Remote;

use super::{answer, figure, handle, keys};
use crate::program::with_host;

/// A figure of a filter elsewhere.
fn figure_of(remote: u32, read: impl FnOnce(&Remote) -> f64) -> f64 {
    figure(|host| host.remote(remote).map(read))
}

/// Outputs the range of the exact answers of the file whose header is in the first `len` bytes of
/// the input: two numbers of eight bytes.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_tail(len: usize) -> i32 {
    answer(|host| host.remote_tail(len).map(|()| 0))
}

/// The filter whose header and exact answers are in the first `len` bytes of the input.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_open(len: usize) -> i32 {
    handle(|host| host.remote_open(len))
}

/// Asks such a filter for a batch, in whole pages of so many bytes. Outputs the ranges to fetch.
/// The result is the number of the batch.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_ask(remote: u32, kind: u32, count: u32, page: u64) -> i32 {
    handle(|host| host.remote_ask(remote, keys(kind, count), page))
}

/// The same for the URL in the first `len` bytes of the input: its host and the parent domains.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_ask_url(remote: u32, len: usize, page: u64) -> i32 {
    handle(|host| host.remote_ask_url(remote, len, page))
}

/// Fails if such a URL, none of whose keys is in, has no host.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_check_url(remote: u32, len: usize) -> i32 {
    answer(|host| host.remote_check_url(remote, len).map(|()| 0))
}

/// Outputs a byte for each key of a batch, by the bytes of its ranges in the first `len` bytes of
/// the input. The result is the number of keys.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_answer(remote: u32, batch: u32, len: usize) -> i32 {
    handle(|host| host.remote_answer(remote, batch, len))
}

/// Forgets a batch.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_forget(batch: u32) {
    with_host(|host| host.remote_forget(batch));
}

/// Frees a filter elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_free(remote: u32) {
    with_host(|host| host.remote_free(remote));
}

/// Keys in the filter, with copies.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_len(remote: u32) -> f64 {
    figure_of(remote, |remote| remote.len() as f64)
}

/// Corrections.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_corrections(remote: u32) -> f64 {
    figure_of(remote, |remote| remote.corrections() as f64)
}

/// Distinct keys that it was built for.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_capacity(remote: u32) -> f64 {
    figure_of(remote, |remote| remote.capacity() as f64)
}

/// The false-positive rate that it was built for.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_error_rate(remote: u32) -> f64 {
    figure_of(remote, Remote::requested_false_positive_rate)
}

/// The false-positive rate as the filter is now.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_current_error_rate(remote: u32) -> f64 {
    figure_of(remote, Remote::false_positive_rate)
}

/// Bytes of the whole file.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_byte_length(remote: u32) -> f64 {
    figure_of(remote, |remote| remote.size_in_bytes() as f64)
}

/// Outputs the options of lines of a filter elsewhere. 1 if each text is its own key.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remote_line_options(remote: u32) -> i32 {
    answer(|host| host.remote_line_options(remote).map(i32::from))
}
