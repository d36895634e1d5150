//! Sorts many numbers by their bits: a radix sort.
//!
//! The first pass puts each number into the part that its highest bits name. A part has about
//! [`PART`] numbers, which the second-level cache holds. The other passes sort each part by its
//! other bits, from the lowest up, as many at a time as make few passes.
//!
//! Parts are counted first, so they may be uneven: numbers that somebody chose cost time for larger
//! parts, and no memory.
//!
//! Cost: three or four passes over the numbers, and as much memory as they take.

use alloc::vec::Vec;
use core::ops::Range;

/// Numbers of a part, on average.
const PART: usize = 1 << 12;
/// The most bits of a pass.
const MOST_BITS: u32 = 12;
const COUNTS: usize = 1 << MOST_BITS;

/// The counts of the first pass, and of the others: 16 KiB each, too much for small stacks.
pub(crate) type Counts = [[u32; COUNTS]; 2];

/// Sorts `numbers`, of which all that differ are in these bits. `spare` is as long.
pub(crate) fn sort(
    numbers: &mut Vec<u64>,
    spare: &mut Vec<u64>,
    [ends, counts]: &mut Counts,
    bits: Range<u32>,
) {
    let all = bits.end - bits.start;
    let mut parts = (numbers.len() / PART).max(1).ilog2().min(MOST_BITS).min(all);
    // Smaller parts, if that saves a pass.
    let beyond = (all - parts) % MOST_BITS;
    let saves = all - parts > MOST_BITS && beyond <= 2 && parts + beyond <= MOST_BITS;
    parts += if saves { beyond } else { 0 };
    let rest = bits.start..bits.end - parts;
    core::mem::swap(numbers, spare);
    pass(spare, numbers, ends, rest.end..bits.end);
    let mut start = 0;
    for &end in &ends[..1 << parts] {
        let part = start..end as usize;
        sort_part(&mut numbers[part.clone()], &mut spare[part.clone()], counts, rest.clone());
        start = part.end;
    }
}

/// Sorts numbers of a part by so many bits.
fn sort_part(numbers: &mut [u64], spare: &mut [u64], counts: &mut [u32; COUNTS], bits: Range<u32>) {
    let passes = bits.end.saturating_sub(bits.start).div_ceil(MOST_BITS);
    if numbers.len() < 2 || passes == 0 {
        return;
    }
    let step = (bits.end - bits.start).div_ceil(passes);
    let (mut from, mut to) = (&mut *numbers, spare);
    for start in bits.clone().step_by(step as usize) {
        pass(from, to, counts, start..bits.end.min(start + step));
        (from, to) = (to, from);
    }
    if passes % 2 == 1 {
        to.copy_from_slice(from);
    }
}

/// Sorts by these bits, of which there are at most [`MOST_BITS`]. Numbers with equal ones stay in
/// their order. `ends` then says where those with each value end.
#[expect(clippy::cast_possible_truncation, reason = "a digit has 12 bits")]
fn pass(from: &[u64], to: &mut [u64], ends: &mut [u32; COUNTS], bits: Range<u32>) {
    let values = 1 << (bits.end - bits.start);
    let digit = |number: u64| ((number >> (bits.start % 64)) & (values - 1)) as usize % COUNTS;
    ends[..1 << (bits.end - bits.start)].fill(0);
    for &number in from {
        ends[digit(number)] += 1;
    }
    let mut sum = 0;
    for end in ends.iter_mut().take(1 << (bits.end - bits.start)) {
        sum += core::mem::replace(end, sum);
    }
    // Each is now where its numbers start, and moves to where they end.
    for &number in from {
        let end = &mut ends[digit(number)];
        to[*end as usize] = number;
        *end += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::hashes;

    #[test]
    fn numbers_are_sorted_as_the_library_does() {
        for (len, bits) in [(0, 0..1), (1, 3..9), (2, 5..5), (90, 0..64), (70_000, 7..40)] {
            for chosen in [u64::MAX, 0x00ff_00ff_0000_ff81, 3] {
                let above = u64::MAX.checked_shl(bits.end).unwrap_or(0);
                let within = !above & (u64::MAX << bits.start);
                let mut numbers: Vec<u64> = hashes(1, len).map(|it| it & within & chosen).collect();
                let mut expected = numbers.clone();
                expected.sort_unstable();
                let mut spare = alloc::vec![0; numbers.len()];
                sort(&mut numbers, &mut spare, &mut [[7; COUNTS]; 2], bits.clone());
                assert!(numbers == expected, "{len} {bits:?}");
            }
        }
    }
}
