//! The keys of an archive, and the manifest of a file.
//!
//! ```text
//! key                     value
//! FF 'c' hash             a chunk; the hash is the BLAKE3 of the value
//! FF 'l' hash             a list: the hashes of up to 1,024 chunks, in order;
//!                         the hash is the BLAKE3 of the value
//! FF 'n' name             the manifest of a file
//! FF 'i' number (u64)     the name with this number
//! FF 't'                  the next number (u64)
//!
//! manifest    0  u8       version, 1
//!             1  u64      number of its name
//!             9  u64      length of the file
//!            17  [32]     BLAKE3 of the file
//!            49  u64      chunks
//!            57  [32]..   hashes of the lists, in order
//! ```
//!
//! All numbers are little-endian. UTF-8 text has no byte FF, so text keys do not collide with
//! these. Lists keep the manifest of a very large file small (8 KiB for 4 GiB in chunks of 16 KiB),
//! and equal parts of files share them. Names are numbered so that they can be listed without a
//! pass over all keys.

use super::error::ArchiveError;

/// A BLAKE3 hash.
pub(super) type Hash = [u8; 32];

/// Number of hashes in a full list.
pub(super) const LIST: usize = 1024;

/// Maximum length of a name in bytes.
pub(super) const MAX_NAME: usize = 4096;

/// The first byte of every key of an archive.
pub(super) const MARK: u8 = 0xff;

/// The key of the record with the next number.
pub(super) const NEXT_NUMBER: &[u8] = &[MARK, b't'];

const VERSION: u8 = 1;
const LISTS_AT: usize = 57;

pub(super) fn chunk_key(hash: &Hash) -> Vec<u8> {
    key(b'c', hash)
}

pub(super) fn list_key(hash: &Hash) -> Vec<u8> {
    key(b'l', hash)
}

pub(super) fn name_key(name: &str) -> Vec<u8> {
    key(b'n', name.as_bytes())
}

pub(super) fn number_key(number: u64) -> Vec<u8> {
    key(b'i', &number.to_le_bytes())
}

/// Returns the hash in the key of a chunk or a list.
pub(super) fn hash_in(key: &[u8]) -> Option<&Hash> {
    match key {
        [MARK, b'c' | b'l', hash @ ..] => hash.try_into().ok(),
        _ => None,
    }
}

/// Returns the name in the key of a manifest.
pub(super) fn name_in(key: &[u8]) -> Option<&str> {
    match key {
        [MARK, b'n', name @ ..] => std::str::from_utf8(name).ok(),
        _ => None,
    }
}

/// Returns the number in the key of a numbered name.
pub(super) fn number_in(key: &[u8]) -> Option<u64> {
    match key {
        [MARK, b'i', number @ ..] => number.try_into().ok().map(u64::from_le_bytes),
        _ => None,
    }
}

fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[MARK, kind], rest].concat()
}

/// The manifest of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) number: u64,
    pub(super) length: u64,
    pub(super) hash: Hash,
    pub(super) chunks: u64,
    pub(super) lists: Vec<Hash>,
}

impl Manifest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LISTS_AT + self.lists.len() * 32);
        bytes.push(VERSION);
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.hash);
        bytes.extend(self.chunks.to_le_bytes());
        self.lists.iter().for_each(|list| bytes.extend(list));
        bytes
    }

    /// Decodes a manifest. Returns `None` if the bytes are not one, or have a later version.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, lists) = bytes.split_at_checked(LISTS_AT)?;
        let (lists, rest) = lists.as_chunks::<32>();
        let manifest = Self {
            number: u64::from_le_bytes(head[1..9].try_into().ok()?),
            length: u64::from_le_bytes(head[9..17].try_into().ok()?),
            hash: head[17..49].try_into().ok()?,
            chunks: u64::from_le_bytes(head[49..57].try_into().ok()?),
            lists: lists.to_vec(),
        };
        let sound = head[0] == VERSION
            && rest.is_empty()
            && manifest.chunks.div_ceil(LIST as u64) == manifest.lists.len() as u64;
        sound.then_some(manifest)
    }
}

/// The error for a record of [`NEXT_NUMBER`] that is not valid.
pub(super) const INVALID_NEXT_NUMBER: ArchiveError =
    ArchiveError::Record { what: "the number of names" };

/// Decodes the value of [`NEXT_NUMBER`].
pub(super) fn decode_next_number(value: &[u8]) -> Result<u64, ArchiveError> {
    value.try_into().map(u64::from_le_bytes).map_err(|_| INVALID_NEXT_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            number: 7,
            length: 20_000_000,
            hash: [1; 32],
            chunks: 1221,
            lists: vec![[2; 32], [3; 32]],
        }
    }

    #[test]
    fn a_manifest_is_read_back_and_has_the_documented_layout() {
        let bytes = manifest().encode();
        assert_eq!(Manifest::decode(&bytes), Some(manifest()));
        assert_eq!((bytes.len(), bytes[0], bytes[1], bytes[17], bytes[57]), (121, 1, 7, 1, 2));
    }

    #[test]
    fn bytes_that_are_not_a_manifest_are_refused() {
        let bytes = manifest().encode();
        for len in 0..bytes.len() {
            assert_eq!(Manifest::decode(&bytes[..len]), None, "{len}");
        }
        assert_eq!(Manifest::decode(&[&bytes[..], &[0; 32]].concat()), None);
        let mut later = bytes;
        later[0] = 2;
        assert_eq!(Manifest::decode(&later), None);
    }

    #[test]
    fn keys_of_an_archive_are_not_text_and_only_content_has_a_hash() {
        let keys = [chunk_key(&[9; 32]), list_key(&[9; 32]), name_key("c"), number_key(1)];
        assert!(keys.iter().all(|key| std::str::from_utf8(key).is_err()));
        let contents: Vec<bool> = keys.iter().map(|key| hash_in(key).is_some()).collect();
        assert_eq!(contents, [true, true, false, false]);
        assert_eq!(hash_in(NEXT_NUMBER), None);
        let names: Vec<_> = keys.iter().map(|key| name_in(key)).collect();
        assert_eq!(names, [None, None, Some("c"), None]);
        let numbers: Vec<_> = keys.iter().map(|key| number_in(key)).collect();
        assert_eq!(numbers, [None, None, None, Some(1)]);
    }
}
