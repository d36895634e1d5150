//! The keys of an archive's records, and the small records that give names their versions.
//!
//! ```text
//! key                     value
//! FF 'c' hash             a chunk; the hash is the BLAKE3 of the value
//! FF 'z' hash             a chunk, compressed; the hash is that of the plain bytes
//! FF 'l' hash             a list: up to 1,024 hashes of chunks, or of lists, in order;
//!                         the hash is the BLAKE3 of the value
//! FF 'v' number (u64)     a version: its time, its name, and what was imported
//! FF 'n' name             3 (u8), then the numbers (u64) of the versions of a name, ascending
//! FF 'w'                  the number (u64) of the newest version, then the value of its record
//! FF 't'                  3 (u8), then the next number (u64), then 4,096 zero bytes
//! FF 'p' path             the name that this path on disk was last imported as
//! FF 'C', 'Z', 'L' hash   a copy of a chunk or a list, of a folder
//! FF 'V' number (u64)     a copy of a version of a folder
//! FF 'g' number (u64)     a gap: the letter and the hash of all that has its copy after it, then
//!                         zeros; 64 KiB or more
//! ```
//!
//! All numbers are little-endian. UTF-8 text has no byte FF, so text keys do not collide with
//! these. Names are bytes and need not be UTF-8.

use std::path::Path;

use super::copies::Parts;
use super::error::ArchiveError;

/// A BLAKE3 hash.
pub(super) type Hash = [u8; 32];

/// Number of hashes in a full list.
pub(super) const LIST: usize = 1024;

/// The first byte of every key of an archive.
pub(super) const MARK: u8 = 0xff;

/// The key of the record with the next number.
pub(super) const NEXT_NUMBER: &[u8] = &[MARK, b't'];

/// The key of the spare copy of the newest version.
pub(super) const SPARE: &[u8] = &[MARK, b'w'];

/// Zero bytes after the next number: the records before and after it are in different sectors.
const SECTOR: usize = 4096;

/// Bytes of a gap: what lies before it and what lies after it are not lost together.
const GAP: usize = 64 << 10;

/// The version of these records.
pub(super) const FORMAT: u8 = 3;

pub(super) fn name_key(name: &[u8]) -> Vec<u8> {
    key(b'n', name)
}

pub(super) fn version_key(number: u64) -> Vec<u8> {
    key(b'v', &number.to_le_bytes())
}

/// The key of the copy of a version.
pub(super) fn version_copy_key(number: u64) -> Vec<u8> {
    key(b'V', &number.to_le_bytes())
}

pub(super) fn gap_key(number: u64) -> Vec<u8> {
    key(b'g', &number.to_le_bytes())
}

/// The key of a path on disk.
pub(super) fn source_key(path: &Path) -> Vec<u8> {
    key(b'p', path.as_os_str().as_encoded_bytes())
}

/// The key of a kind of record: of a chunk or a list, `rest` is its hash.
pub(super) fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[MARK, kind], rest].concat()
}

/// Returns the hash in the key of a chunk or a list, or of a copy.
pub(super) fn hash_in(key: &[u8]) -> Option<&Hash> {
    match key {
        [MARK, b'c' | b'z' | b'l' | b'C' | b'Z' | b'L', hash @ ..] => hash.try_into().ok(),
        _ => None,
    }
}

/// Returns whether a key is that of a copy or a gap.
pub(super) fn is_copy(key: &[u8]) -> bool {
    matches!(key, [MARK, b'C' | b'Z' | b'L' | b'V' | b'g', ..])
}

/// Returns the name in the key of a name.
pub(super) fn name_in(key: &[u8]) -> Option<&[u8]> {
    match key {
        [MARK, b'n', name @ ..] => Some(name),
        _ => None,
    }
}

/// Returns the number in the key of a version.
pub(super) fn number_in(key: &[u8]) -> Option<u64> {
    number_of_kind(b'v', key)
}

/// Returns the number in the key of the copy of a version.
pub(super) fn copied_number_in(key: &[u8]) -> Option<u64> {
    number_of_kind(b'V', key)
}

/// Returns the number in the key of a gap.
pub(super) fn gap_number_in(key: &[u8]) -> Option<u64> {
    number_of_kind(b'g', key)
}

fn number_of_kind(kind: u8, key: &[u8]) -> Option<u64> {
    match key {
        [MARK, found, number @ ..] if *found == kind => {
            number.try_into().ok().map(u64::from_le_bytes)
        }
        _ => None,
    }
}

/// Encodes the value of a gap.
pub(super) fn encode_gap(parts: &Parts) -> Vec<u8> {
    let mut value: Vec<u8> =
        parts.iter().flat_map(|(kind, hash)| std::iter::once(*kind).chain(*hash)).collect();
    value.resize(value.len().max(GAP), 0);
    value
}

/// Decodes the value of a gap.
pub(super) fn decode_gap(value: &[u8]) -> Parts {
    let (parts, _) = value.as_chunks::<33>();
    let parts = parts.iter().filter_map(|part| {
        let (kind, hash) = part.split_first_chunk::<1>()?;
        Some((kind[0], hash.try_into().ok()?))
    });
    parts.take_while(|(kind, _)| *kind != 0).collect()
}

/// Encodes the value of a name.
pub(super) fn encode_numbers(numbers: &[u64]) -> Vec<u8> {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    std::iter::once(FORMAT).chain(bytes).collect()
}

/// Decodes the value of a name. `what` is what the record describes.
pub(super) fn decode_numbers(value: &[u8], what: &'static str) -> Result<Vec<u64>, ArchiveError> {
    let invalid = || ArchiveError::Record { what };
    let (format, rest) = value.split_first().ok_or_else(invalid)?;
    if *format != FORMAT {
        return Err(invalid());
    }
    let (numbers, rest) = rest.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let is_valid = rest.is_empty() && !numbers.is_empty() && numbers.is_sorted_by(|a, b| a < b);
    if is_valid { Ok(numbers) } else { Err(invalid()) }
}

/// Encodes the value of [`NEXT_NUMBER`].
pub(super) fn encode_next_number(next: u64) -> Vec<u8> {
    [&[FORMAT], &next.to_le_bytes()[..], &[0; SECTOR]].concat()
}

/// The error for a record of [`SPARE`] that is not valid.
pub(super) const INVALID_SPARE: ArchiveError =
    ArchiveError::Record { what: "the copy of the newest version" };

/// The error for a record of [`NEXT_NUMBER`] that is not valid.
pub(super) const INVALID_NEXT_NUMBER: ArchiveError =
    ArchiveError::Record { what: "the number of versions" };

/// Decodes the value of [`NEXT_NUMBER`].
pub(super) fn decode_next_number(value: &[u8]) -> Result<u64, ArchiveError> {
    let number = value.strip_prefix(&[FORMAT]).and_then(<[u8]>::split_first_chunk);
    match number {
        Some((number, zeros)) if zeros.iter().all(|byte| *byte == 0) => {
            Ok(u64::from_le_bytes(*number))
        }
        _ => Err(INVALID_NEXT_NUMBER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_an_archive_are_not_text_and_only_content_has_a_hash() {
        let keys = [key(b'z', &[9; 32]), key(b'L', &[9; 32]), name_key(b"c"), version_key(1)];
        assert!(keys.iter().all(|key| std::str::from_utf8(key).is_err()));
        let contents: Vec<bool> = keys.iter().map(|key| hash_in(key).is_some()).collect();
        assert_eq!(contents, [true, true, false, false]);
        assert_eq!(hash_in(NEXT_NUMBER), None);
        let names: Vec<_> = keys.iter().map(|key| name_in(key)).collect();
        assert_eq!(names, [None, None, Some(&b"c"[..]), None]);
        let numbers: Vec<_> = keys.iter().map(|key| number_in(key)).collect();
        assert_eq!(numbers, [None, None, None, Some(1)]);
    }

    #[test]
    fn the_parts_of_a_gap_are_read_back_and_it_is_long() {
        for count in [0, 1, 3, 1985, 1986, 5000_u32] {
            let hash = |number| *blake3::hash(&u32::to_le_bytes(number)).as_bytes();
            let parts: Parts = (0..count).map(|it| (b"czl"[it as usize % 3], hash(it))).collect();
            let value = encode_gap(&parts);
            assert!(value.len() >= GAP && decode_gap(&value) == parts, "{count}");
        }
    }

    #[test]
    fn numbers_are_read_back_and_others_are_refused() {
        let bytes = encode_numbers(&[1, 7]);
        assert_eq!(bytes, [3, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode_numbers(&bytes, "x").unwrap(), [1, 7]);
        for wrong in [&bytes[..0], &bytes[..1], &bytes[..16], &[1; 17], &encode_numbers(&[7, 7])] {
            assert!(matches!(decode_numbers(wrong, "x"), Err(ArchiveError::Record { .. })));
        }
        assert_eq!(decode_next_number(&encode_next_number(7)).unwrap(), 7);
        assert!(encode_next_number(7).len() > SECTOR);
        assert!(matches!(decode_next_number(&bytes), Err(ArchiveError::Record { .. })));
    }
}
