//! The functions that open, ask and patch filters.

use koel::CuckooFilter;

use super::{answer, figure, handle, keys};
use crate::program::with_host;

/// A figure of a filter.
fn figure_of(filter: u32, read: impl FnOnce(&CuckooFilter) -> f64) -> f64 {
    figure(|host| host.filter(filter).map(read))
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
    figure_of(filter, CuckooFilter::requested_false_positive_rate)
}

/// The false-positive rate as the filter is now.
#[unsafe(no_mangle)]
pub extern "C" fn koel_current_error_rate(filter: u32) -> f64 {
    figure_of(filter, CuckooFilter::false_positive_rate)
}

/// The share of slots in use.
#[unsafe(no_mangle)]
pub extern "C" fn koel_load_factor(filter: u32) -> f64 {
    figure_of(filter, CuckooFilter::load_factor)
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
