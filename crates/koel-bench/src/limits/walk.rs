//! Reads random cache lines, unaided or with a ring of prefetches. Has the only `unsafe` of the
//! crate.

use std::hint::black_box;

use super::memory::LINE;
use testkit::keys::splitmix64;

type Line = [u8; LINE];

/// Reads `lines` random lines in each of `operations` operations, prefetched `ring` operations
/// ahead. The result depends on all of them.
pub(super) fn walk(table: &[Line], lines: usize, ring: usize, operations: u64, seed: u64) -> u64 {
    let table = black_box(table);
    let seed = black_box(seed);
    let sum = match (lines, ring) {
        (1, 0) => unaided::<1>(table, operations, seed),
        (1, 8) => ahead::<1, 8>(table, operations, seed),
        (1, 16) => ahead::<1, 16>(table, operations, seed),
        (1, 32) => ahead::<1, 32>(table, operations, seed),
        (1, 64) => ahead::<1, 64>(table, operations, seed),
        (1, 128) => ahead::<1, 128>(table, operations, seed),
        (2, 0) => unaided::<2>(table, operations, seed),
        (2, 8) => ahead::<2, 8>(table, operations, seed),
        (2, 16) => ahead::<2, 16>(table, operations, seed),
        (2, 32) => ahead::<2, 32>(table, operations, seed),
        (2, 64) => ahead::<2, 64>(table, operations, seed),
        (2, 128) => ahead::<2, 128>(table, operations, seed),
        _ => unreachable!("no walk of {lines} lines with a ring of {ring}"),
    };
    black_box(sum)
}

/// The lines of an operation: independent of each other, and as cheap to compute as a filter's
/// addresses.
#[inline(always)]
fn addresses<const LINES: usize>(operation: u64, count: u64) -> [usize; LINES] {
    let mut hash = splitmix64(operation);
    [(); LINES].map(|()| {
        let (low, line) = hash.carrying_mul(count, 0);
        // The remaining fraction is as random as the whole was, to 64 - log2(count) bits.
        hash = low.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        #[expect(clippy::cast_possible_truncation, reason = "below the number of lines")]
        let line = line as usize;
        line
    })
}

#[inline(always)]
fn read<const LINES: usize>(table: &[Line], lines: [usize; LINES]) -> u64 {
    lines.iter().map(|&line| u64::from(table[line][0])).sum()
}

fn unaided<const LINES: usize>(table: &[Line], operations: u64, seed: u64) -> u64 {
    let count = table.len() as u64;
    let first = splitmix64(seed);
    (0..operations)
        .map(|i| read(table, addresses::<LINES>(first.wrapping_add(i), count)))
        .fold(0, u64::wrapping_add)
}

fn ahead<const LINES: usize, const RING: usize>(table: &[Line], operations: u64, seed: u64) -> u64 {
    let count = table.len() as u64;
    let first = splitmix64(seed);
    let mut ring = [[0; LINES]; RING];
    let mut sum = 0_u64;
    for i in 0..operations {
        let next = addresses::<LINES>(first.wrapping_add(i), count);
        next.iter().for_each(|&line| prefetch(&table[line]));
        #[expect(clippy::cast_possible_truncation, reason = "a position in the ring")]
        let at = i as usize % RING;
        // The first round of the ring reads line 0 instead.
        let due = std::mem::replace(&mut ring[at], next);
        sum = sum.wrapping_add(read(table, due));
    }
    sum
}

/// Prefetches a line without waiting for it.
#[inline(always)]
fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address changes nothing and cannot fault, and this address is
        // that of a live reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    black_box(line);
}
