//! Bits in bytes, lowest first, and the two codes of a patch.
//!
//! * **Golomb-Rice**, with a parameter b: `n >> b` zeros, a one, then the low b bits of n. Gaps
//!   between numbers in random order take 1.5 to 2 bits more than the b bits of the mean gap.
//! * **Elias gamma**, for n of at least 1: as many zeros as n has bits after its first one, a one,
//!   then those bits.
//!
//! Sources: R. Rice, J. Plaunt, Adaptive variable-length coding (IEEE Trans. Commun. 1971);
//! P. Elias, Universal codeword sets (IEEE Trans. Inf. Theory 1975).

use alloc::vec::Vec;

/// Writes bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet.
    rest: u8,
    rest_bits: u32,
}

/// A write for which there is no memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoMemory;

impl BitWriter {
    /// Writes the low `bits` bits of a number, at most 64.
    pub(super) fn push(&mut self, number: u64, bits: u32) -> Result<(), NoMemory> {
        let all = u128::from(self.rest) | u128::from(number) << self.rest_bits;
        let mut left = self.rest_bits + bits;
        let bytes = all.to_le_bytes();
        let whole = (left / 8) as usize;
        self.bytes.try_reserve(whole + 1).map_err(|_| NoMemory)?;
        self.bytes.extend_from_slice(&bytes[..whole]);
        left %= 8;
        self.rest = bytes[whole] & !(u8::MAX << left);
        self.rest_bits = left;
        Ok(())
    }

    /// Writes so many zeros and a one.
    fn push_zeros(&mut self, mut zeros: u64) -> Result<(), NoMemory> {
        while zeros >= 32 {
            self.push(0, 32)?;
            zeros -= 32;
        }
        self.push(1 << zeros, u32::try_from(zeros).unwrap_or(0) + 1)
    }

    /// Writes a number in the Golomb-Rice code.
    pub(super) fn push_rice(&mut self, number: u64, parameter: u32) -> Result<(), NoMemory> {
        self.push_zeros(number >> parameter)?;
        self.push(number & !(u64::MAX << parameter), parameter)
    }

    /// Writes a number, at least 1, in the gamma code.
    pub(super) fn push_gamma(&mut self, number: u64) -> Result<(), NoMemory> {
        let bits = number.max(1).ilog2();
        self.push_zeros(bits.into())?;
        self.push(number & !(u64::MAX << bits), bits)
    }

    /// The bytes. Zeros fill the last one.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, NoMemory> {
        let fill = (8 - self.rest_bits) % 8;
        self.push(0, fill)?;
        Ok(self.bytes)
    }
}

/// Reads bits. A read beyond the end returns `None`.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits of the first byte that were read.
    done: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, done: 0 }
    }

    /// The bits that are left.
    pub(super) fn left(&self) -> u64 {
        (self.bytes.len() as u64).saturating_mul(8) - u64::from(self.done)
    }

    /// The next 64 bits; zeros follow the last one.
    fn window(&self) -> u64 {
        let mut bytes = [0; 16];
        let len = self.bytes.len().min(9);
        bytes[..len].copy_from_slice(&self.bytes[..len]);
        low_half(u128::from_le_bytes(bytes) >> self.done)
    }

    /// Skips bits, at most 64 and at most those that are left.
    fn skip(&mut self, bits: u32) {
        let done = self.done + bits;
        self.bytes = &self.bytes[(done / 8) as usize..];
        self.done = done % 8;
    }

    /// The next bits as a number, at most 64.
    pub(super) fn take(&mut self, bits: u32) -> Option<u64> {
        if u64::from(bits) > self.left() {
            return None;
        }
        let beyond = u64::MAX.checked_shl(bits).unwrap_or(0);
        let number = self.window() & !beyond;
        self.skip(bits);
        Some(number)
    }

    /// Reads zeros and the one behind them, and returns how many zeros.
    fn take_zeros(&mut self) -> Option<u64> {
        let mut zeros = 0_u64;
        while self.window() == 0 {
            let left = u32::try_from(self.left().min(64)).unwrap_or(64);
            if left < 64 {
                return None;
            }
            self.skip(left);
            zeros += 64;
        }
        let more = self.window().trailing_zeros();
        self.skip(more + 1);
        Some(zeros + u64::from(more))
    }

    /// Reads a number in the Golomb-Rice code with a parameter of at most 63.
    pub(super) fn take_rice(&mut self, parameter: u32) -> Option<u64> {
        let high = self.take_zeros()?;
        let low = self.take(parameter)?;
        (high <= u64::MAX >> parameter).then(|| high << parameter | low)
    }

    /// Reads a number in the gamma code.
    pub(super) fn take_gamma(&mut self) -> Option<u64> {
        let bits = self.take_zeros().filter(|&bits| bits < 64)?;
        let low = self.take(u32::try_from(bits).ok()?)?;
        Some(1 << bits | low)
    }

    /// The bytes behind the one that is read. `None` if the rest of that one is not zero.
    pub(super) fn behind(mut self) -> Option<&'a [u8]> {
        let rest = if self.done == 0 { 0 } else { 8 - self.done };
        (self.take(rest)? == 0).then_some(self.bytes)
    }
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "truncation is the purpose")]
const fn low_half(word: u128) -> u64 {
    word as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::splitmix64 as hash;

    extern crate std;

    /// Numbers of every length.
    fn number(i: u64) -> u64 {
        hash(i) >> (hash(i + 77) % 64)
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut written = BitWriter::default();
        for i in 0..5000 {
            let (n, b) = (number(i), u32::try_from(hash(i + 5) % 64).unwrap());
            match i % 3 {
                0 => written.push(n & !(u64::MAX << b), b).unwrap(),
                1 => written.push_gamma(n.max(1)).unwrap(),
                _ => written.push_rice(n, b.max(n.max(1).ilog2().saturating_sub(9))).unwrap(),
            }
        }
        written.push(u64::MAX, 64).unwrap();
        let bytes = written.finish().unwrap();
        let mut read = BitReader::new(&bytes);
        for i in 0..5000 {
            let (n, b) = (number(i), u32::try_from(hash(i + 5) % 64).unwrap());
            let (found, expected) = match i % 3 {
                0 => (read.take(b), n & !(u64::MAX << b)),
                1 => (read.take_gamma(), n.max(1)),
                _ => (read.take_rice(b.max(n.max(1).ilog2().saturating_sub(9))), n),
            };
            assert_eq!(found, Some(expected), "{i}");
        }
        assert_eq!(read.take(64), Some(u64::MAX));
        assert!(read.left() < 8 && read.behind() == Some(&[]));
    }

    #[test]
    fn reads_beyond_the_end_and_numbers_beyond_64_bits_are_refused() {
        for bytes in [&[][..], &[0], &[0; 200]] {
            assert_eq!(BitReader::new(bytes).take_zeros(), None);
            assert_eq!(BitReader::new(bytes).take_gamma(), None);
        }
        let mut bits = BitWriter::default();
        bits.push_zeros(64).unwrap();
        bits.push(0, 64).unwrap();
        let bytes = bits.finish().unwrap();
        assert_eq!(BitReader::new(&bytes).take_gamma(), None);
        assert_eq!(BitReader::new(&bytes).take_rice(60), None);
        assert_eq!(BitReader::new(&bytes).take_rice(0), Some(64));
        assert_eq!(BitReader::new(&[1]).take_gamma(), Some(1));
        let mut first = BitReader::new(&[3, 9]);
        assert_eq!((first.take(1), first.behind()), (Some(1), None));
    }
}
