//! Little-endian numbers in bytes, and byte counts as `usize`.

/// Returns the little-endian `u64` at `at`, or 0 if the bytes end before it does.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

/// Returns the little-endian `u32` at `at`, or 0 if the bytes end before it does.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    part.map_or(0, |part| u32::from_le_bytes(*part))
}

/// Converts a byte count to `usize`. It always fits, since the crate is for 64-bit targets only.
#[inline]
pub(crate) fn usize_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}
