//! Asking the memory for a byte that will be needed soon.
//!
//! A hint that changes nothing a program can see: any address will do. On processors without the instruction it does nothing.

/// Brings the cache line of `bytes[index]` closer; out of range, nothing happens.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the intrinsic takes a raw pointer")
)]
pub(crate) fn prefetch(bytes: &[u8], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, and the pointer is that of a byte in range besides.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, index);
}
