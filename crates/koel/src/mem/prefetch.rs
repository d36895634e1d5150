//! Prefetches: asks the memory for bytes that will be needed soon.
//!
//! A prefetch is a hint that changes nothing a program can see, and takes any address. On
//! processors other than x86-64 it does nothing.

/// Whether a prefetch does something.
pub(crate) const AVAILABLE: bool = cfg!(target_arch = "x86_64");

/// Prefetches the cache line of `items[index]`. If that is out of range, another line or none.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the intrinsic takes a raw pointer")
)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = items.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches `count` items from number `first` on.
#[inline(always)]
pub(crate) fn prefetch_many<T>(items: &[T], first: usize, count: usize) {
    let items_in_a_line = (LINE / size_of::<T>().max(1)).max(1);
    for i in (first..first + count).step_by(items_in_a_line) {
        prefetch(items, i);
    }
}
