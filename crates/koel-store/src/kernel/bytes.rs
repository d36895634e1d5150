//! Numbers in bytes, little-endian or of variable length, and byte counts as `usize`.

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

/// Returns the little-endian `u16` at `at`, or 0 if the bytes end before it does.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> usize {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    part.map_or(0, |part| usize::from(u16::from_le_bytes(*part)))
}

/// Converts a byte count to `usize`. It always fits, since the crate is for 64-bit targets only.
#[inline]
pub(crate) fn usize_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Appends a number in 1 to 10 bytes: seven bits in each, the lowest first, and a top bit that says
/// whether another byte follows.
#[inline]
pub(crate) fn put_varint(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    into.push(number.to_le_bytes()[0]);
}

/// Bytes of the longest number of variable length.
pub(crate) const MAX_VARINT: usize = 10;

/// Takes a number of variable length from the front of `bytes`. Returns `None` if they end before
/// it does, or if it has more than 64 bits.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    take_long_varint(bytes)
}

fn take_long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (i, &byte) in bytes.iter().enumerate().take(MAX_VARINT) {
        let bits = u64::from(byte & 0x7f);
        if i == MAX_VARINT - 1 && bits > 1 {
            return None;
        }
        number |= bits << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length_come_back_and_too_long_ones_are_refused() {
        for number in (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut cut = &bytes[..bytes.len() - 1];
            assert_eq!(take_varint(&mut cut), None);
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!((take_varint(&mut rest), rest), (Some(number), &[7][..]));
        }
        let too_long = [[0xff; 9].as_slice(), &[2]].concat();
        assert_eq!(take_varint(&mut &too_long[..]), None);
        assert_eq!(take_varint(&mut &[0x80; 11][..]), None);
    }
}
