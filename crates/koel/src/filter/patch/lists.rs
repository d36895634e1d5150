//! Ascending numbers as a string of bits, some lists with a count beside each number.
//!
//! ```text
//!     a list        gap, gap, ...      or      gap, count, gap, count, ...
//!     gap           number - previous - 1, Golomb-Rice; of the first one the number itself
//!     count         at least 1, gamma
//!     directory     of each list: gamma(1 + numbers); if there are any, the parameter : 6 and
//!                   gamma(bytes)
//! ```
//!
//! A list that is cut short, or whose numbers pass 2^64 - 1, ends early and is
//! [not sound](Ascending::is_sound) then.

use super::bits::{BitReader, BitWriter, NoMemory};

/// Bits of a parameter in the directory.
const PARAMETER_BITS: u32 = 6;

/// Writes a list of ascending numbers, and its entry of the directory. Returns its bytes.
pub(super) fn write(
    directory: &mut BitWriter,
    numbers: impl ExactSizeIterator<Item = (u64, u64)> + Clone,
    is_counted: bool,
) -> Result<alloc::vec::Vec<u8>, NoMemory> {
    let len = numbers.len() as u64;
    directory.push_gamma(len + 1)?;
    if len == 0 {
        return Ok(alloc::vec::Vec::new());
    }
    let gaps = || {
        let mut least = 0_u64;
        numbers.clone().map(move |(number, count)| {
            let gap = number - least;
            least = number.wrapping_add(1);
            (gap, count)
        })
    };
    let parameter = best_parameter(len, || gaps().map(|(gap, _)| gap));
    let mut bits = BitWriter::default();
    for (gap, count) in gaps() {
        bits.push_rice(gap, parameter)?;
        if is_counted {
            bits.push_gamma(count)?;
        }
    }
    let bytes = bits.finish()?;
    directory.push(parameter.into(), PARAMETER_BITS)?;
    directory.push_gamma(bytes.len() as u64)?;
    Ok(bytes)
}

/// The parameter with the fewest bits: one of those near the mean gap.
fn best_parameter<I: Iterator<Item = u64>>(len: u64, gaps: impl Fn() -> I) -> u32 {
    let sum = gaps().fold(0_u64, u64::saturating_add);
    let near = (sum / len).max(1).ilog2();
    let cost = |parameter: &u32| {
        let bits = gaps().map(|gap| (gap >> parameter) + 1 + u64::from(*parameter));
        bits.fold(0, u64::saturating_add)
    };
    (near.saturating_sub(2)..=(near + 1).min(63)).min_by_key(cost).unwrap_or(near)
}

/// Reads a list of ascending numbers.
#[derive(Clone, Debug)]
pub(super) struct Ascending<'a> {
    bits: BitReader<'a>,
    parameter: u32,
    is_counted: bool,
    /// Numbers that were not read yet.
    left: u64,
    /// The next number is this or more; `None` behind 2^64 - 1.
    least: Option<u64>,
    /// The number that was read, and its count.
    next: Option<(u64, u64)>,
    is_sound: bool,
}

impl<'a> Ascending<'a> {
    /// The lists of a directory, and how many numbers each has. `None` if the directory is not
    /// sound, or if the lists do not fill `content`.
    pub(super) fn of_directory<const N: usize>(
        content: &'a [u8],
        are_counted: [bool; N],
    ) -> Option<([Self; N], [u64; N])> {
        let mut directory = BitReader::new(content);
        let mut lens = [0; N];
        let mut entries = [(0, 0); N];
        for (len, entry) in lens.iter_mut().zip(&mut entries) {
            *len = directory.take_gamma()? - 1;
            if *len > 0 {
                let parameter = directory.take(PARAMETER_BITS)?;
                *entry = (u32::try_from(parameter).ok()?, directory.take_gamma()?);
            }
        }
        let mut rest = directory.behind()?;
        let mut lists = [(); N].map(|()| None);
        for (i, list) in lists.iter_mut().enumerate() {
            let (parameter, bytes) = entries[i];
            let (bytes, behind) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
            *list = Some(Self::new(bytes, parameter, lens[i], are_counted[i]));
            rest = behind;
        }
        let lists = lists.map(|list| list.filter(Self::is_sound));
        let is_whole = rest.is_empty() && lists.iter().all(Option::is_some);
        is_whole.then(|| (lists.map(|list| list.unwrap_or(Self::new(&[], 0, 0, false))), lens))
    }

    fn new(bytes: &'a [u8], parameter: u32, left: u64, is_counted: bool) -> Self {
        let bits = BitReader::new(bytes);
        // A number takes a bit or more.
        let is_sound = left <= bits.left();
        let (least, next) = (Some(0), None);
        let mut list = Self { bits, parameter, is_counted, left, least, next, is_sound };
        list.advance();
        list
    }

    /// The next number.
    pub(super) fn peek(&self) -> Option<u64> {
        self.next.map(|(number, _)| number)
    }

    /// Takes the next number with its count, if it is this one.
    pub(super) fn take(&mut self, number: u64) -> Option<u64> {
        let (_, count) = self.next.filter(|&(next, _)| next == number)?;
        self.advance();
        Some(count)
    }

    fn advance(&mut self) {
        self.next = None;
        if self.left > 0 && self.is_sound {
            self.left -= 1;
            self.next = self.read();
            self.is_sound = self.next.is_some();
        }
    }

    fn read(&mut self) -> Option<(u64, u64)> {
        let number = self.least?.checked_add(self.bits.take_rice(self.parameter)?)?;
        self.least = number.checked_add(1);
        let count = if self.is_counted { self.bits.take_gamma()? } else { 1 };
        Some((number, count))
    }

    /// Whether nothing was wrong so far.
    pub(super) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Whether the whole list was taken, and all of it is sound.
    pub(super) fn is_done(&self) -> bool {
        let is_taken = self.is_sound && self.next.is_none() && self.left == 0;
        is_taken && self.bits.clone().behind().is_some_and(<[u8]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    extern crate std;

    fn written(lists: &[(Vec<(u64, u64)>, bool)]) -> Vec<u8> {
        let mut directory = BitWriter::default();
        let bytes: Vec<_> = lists
            .iter()
            .map(|(list, counted)| write(&mut directory, list.iter().copied(), *counted).unwrap())
            .collect();
        [directory.finish().unwrap(), bytes.concat()].concat()
    }

    fn read(mut list: Ascending<'_>) -> (Vec<(u64, u64)>, bool) {
        let mut all = Vec::new();
        while let Some(number) = list.peek() {
            all.push((number, list.take(number).unwrap()));
        }
        (all, list.is_done())
    }

    /// Numbers below `2^bits`, and counts.
    fn numbers(len: u64, bits: u32, is_counted: bool) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = (0..len)
            .map(|i| (hash(i) >> (64 - bits), if is_counted { 1 + hash(i) % 9 } else { 1 }))
            .collect();
        all.sort_unstable();
        all.dedup_by_key(|it| it.0);
        all
    }

    #[test]
    fn lists_are_read_as_they_were_written() {
        for len in [0, 1, 2, 100, 3000] {
            for bits in [1, 7, 20, 40, 64] {
                let (plain, counted) = (numbers(len, bits, false), numbers(len, bits, true));
                let last = std::vec![(u64::MAX, u64::MAX)];
                let lists = [(plain, false), (counted, true), (last, true)];
                let bytes = written(&lists);
                let (found, lens) = Ascending::of_directory(&bytes, [false, true, true]).unwrap();
                for ((list, len), (expected, _)) in found.into_iter().zip(lens).zip(&lists) {
                    assert_eq!(
                        (read(list), len),
                        ((expected.clone(), true), expected.len() as u64)
                    );
                }
            }
        }
    }

    #[test]
    fn random_numbers_take_two_bits_more_than_the_logarithm_of_their_mean_gap() {
        let list = numbers(1000, 30, false);
        let bytes = written(&[(list, false)]);
        assert!(bytes.len() < 1000 * (20 + 2) / 8 + 10, "{}", bytes.len());
    }

    #[test]
    fn directories_of_other_lengths_are_refused() {
        let bytes = written(&[(numbers(50, 20, false), false)]);
        for end in 0..bytes.len() {
            assert!(Ascending::of_directory(&bytes[..end], [false]).is_none(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Ascending::of_directory(&longer, [false]).is_none());
    }

    #[test]
    fn any_bytes_give_ascending_numbers_or_an_error() {
        let (mut refused, mut ended, mut whole) = (0, 0, 0);
        for seed in 0..30_000_u64 {
            let bytes: Vec<u8> =
                (0..seed % 9).map(|i| hash(seed * 9 + i).to_le_bytes()[0]).collect();
            let Some((lists, _)) = Ascending::of_directory(&bytes, [false, true]) else {
                refused += 1;
                continue;
            };
            for list in lists {
                let (numbers, is_done) = read(list);
                assert!(numbers.is_sorted_by(|one, next| one.0 < next.0));
                *if is_done { &mut whole } else { &mut ended } += 1;
            }
        }
        assert!(refused > 100 && ended > 30 && whole > 30, "{refused} {ended} {whole}");
    }
}
