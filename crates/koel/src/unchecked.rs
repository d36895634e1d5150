//! Reading where the caller knows that there is something to read.
//!
//! A lookup reads two buckets, and a check of each against the length of the table is a tenth of its instructions. In a table that no cache holds, instructions are time: a processor
//! runs so many ahead of a read that waits, and the fewer a lookup takes, the more lookups wait together (docs/decisions/0006-speed.md has the figures). One caller, `Table::contains_hash`.

/// The eight bytes from `at` on, little-endian.
///
/// # Safety
/// `at + 8` is at most the length of `bytes`.
#[inline(always)]
#[expect(unsafe_code, reason = "a read without a check")]
pub(crate) unsafe fn read(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(bytes.len() >= 8 && at <= bytes.len() - 8);
    // SAFETY: the caller says that this range is within `bytes`.
    let word = unsafe { bytes.get_unchecked(at..at + 8) };
    u64::from_le_bytes(word.try_into().expect("a range of 8 bytes"))
}
