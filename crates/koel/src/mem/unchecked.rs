//! Reads and changes eight bytes that were checked before to be within a slice.
//!
//! A lookup reads two buckets. Checking each against the length of the table takes a tenth of its
//! instructions. In a table larger than the caches, fewer instructions mean more throughput: a
//! processor looks only so far ahead of a read that waits, so shorter lookups let more of them wait
//! together (docs/decisions/0006-lookups.md has the figures). Single lookups compute locations that
//! are always in the table. [`Reader`] checks a block of locations once. `table/pair.rs` makes
//! changes, at locations of its own table.

use crate::mem::vector::{Column, InstructionSet};

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

/// Flips the bits of the eight bytes from `at` on, little-endian, that are set in `change`.
///
/// # Safety
/// `at + 8` is at most the length of `bytes`.
#[inline(always)]
#[expect(unsafe_code, reason = "a store without a check")]
pub(crate) unsafe fn xor_at(bytes: &mut [u8], at: usize, change: u64) {
    // SAFETY: the caller says that eight bytes follow `at`.
    let word = unsafe { read(bytes, at) };
    // SAFETY: as above.
    let bytes = unsafe { bytes.get_unchecked_mut(at..at + 8) };
    bytes.copy_from_slice(&(word ^ change).to_le_bytes());
}

/// Reads at the locations of a block, which were checked all at once, and up to `most_later` bytes
/// later.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    starts: &'a [Column; 2],
    most_later: usize,
}

impl<'a> Reader<'a> {
    /// Checks that `most_later + 8` bytes follow each of `starts`.
    ///
    /// # Panics
    /// If fewer follow one of them.
    #[inline]
    pub(crate) fn new(
        bytes: &'a [u8],
        starts: &'a [Column; 2],
        most_later: usize,
        set: InstructionSet,
    ) -> Self {
        let last = largest(starts, set);
        let needed = (most_later + 8) as u64;
        assert!(last.saturating_add(needed) <= bytes.len() as u64, "a location beyond the table");
        Self { bytes, starts, most_later }
    }

    /// The eight bytes at start `i` of a column, little-endian.
    #[inline(always)]
    pub(crate) fn read(&self, column: usize, i: usize) -> u64 {
        self.read_later(column, i, 0)
    }

    /// The eight bytes that start `later` bytes after start `i` of a column, little-endian.
    ///
    /// # Panics
    /// If `later` is more than `most_later`.
    #[inline(always)]
    #[expect(unsafe_code, reason = "checked by `new`, once for all of them")]
    #[expect(clippy::cast_possible_truncation, reason = "less than the length of a slice")]
    pub(crate) fn read_later(&self, column: usize, i: usize, later: usize) -> u64 {
        assert!(later <= self.most_later, "a read beyond the bytes that were checked");
        // SAFETY: `new` checked that `most_later + 8` bytes follow the largest of `starts`, which
        // have been borrowed since.
        unsafe { read(self.bytes, self.starts[column][i] as usize + later) }
    }
}

/// The largest number of both columns.
#[inline(always)]
pub(crate) fn largest(columns: &[Column; 2], set: InstructionSet) -> u64 {
    let mut largest = 0;
    set.run(
        #[inline(always)]
        || largest = largest_of(columns),
    );
    largest
}

/// Eight at a time, as vector code has them.
#[inline(always)]
fn largest_of(columns: &[Column; 2]) -> u64 {
    let mut largest = [0; 8];
    for numbers in columns.iter().flat_map(|column| column.as_chunks::<8>().0) {
        for (largest, &number) in largest.iter_mut().zip(numbers) {
            *largest = number.max(*largest);
        }
    }
    largest.into_iter().fold(0, u64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::vector::{BLOCK, each_set};
    use alloc::vec::Vec;
    use std::panic::catch_unwind;

    extern crate std;

    #[test]
    fn a_block_is_read_only_if_all_its_locations_are_in_the_table() {
        let bytes: Vec<u8> = (0..=255).collect();
        each_set(|set| {
            for odd in 0..2 * BLOCK {
                let mut starts = [[0; BLOCK]; 2];
                starts[odd / BLOCK][odd % BLOCK] = 246;
                let reader = Reader::new(&bytes, &starts, 2, set);
                let first = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
                let last = first + 0xf6f6_f6f6_f6f6_f6f6;
                assert_eq!(reader.read(odd / BLOCK, odd % BLOCK), last);
                assert_eq!(
                    reader.read_later(odd / BLOCK, odd % BLOCK, 2),
                    last + 0x0202_0202_0202_0202
                );
                assert_eq!(reader.read(1 - odd / BLOCK, odd % BLOCK), first);
                for beyond in [247, 1 << 32, u64::MAX] {
                    starts[odd / BLOCK][odd % BLOCK] = beyond;
                    assert!(
                        catch_unwind(|| Reader::new(&bytes, &starts, 2, set).bytes.len()).is_err()
                    );
                }
            }
        });
    }
}
