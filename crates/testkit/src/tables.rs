//! Tables of unknown bytes: a fuzzer's input becomes a table file. It is read in every way; a file
//! without damage has the same entries in each of them.
//!
//! `sealed` makes the checksums valid again, because random changes rarely reach the code behind
//! them. It follows docs/FORMAT-STORES.md and shares no code with the store.

use std::collections::BTreeMap;

use koel_store::Error;
use koel_store::table_trial::{OwnedEntry, build, read};
use xxhash_rust::xxh3::xxh3_64;

use crate::exercise::is_one_line;
use crate::storage::{MemoryFolder, Random};
use crate::stores::{checksum, set};

const NAME: &str = "0000000000000003.table";
const NUMBER: u64 = 3;
const SALT: u64 = 1;
const SEED: u64 = 2;

const HEADER: usize = 40;
const FRAME: usize = 20;
const FOOTER: usize = 32;

/// Reads the bytes as a table, as they are and with checksums that fit.
///
/// # Panics
/// If something is wrong with the store.
pub fn fuzzed_bytes(bytes: &[u8]) {
    assert_sound_or_reported(bytes.to_vec());
    assert_sound_or_reported(sealed(bytes.to_vec()));
}

fn assert_sound_or_reported(bytes: Vec<u8>) {
    let folder = MemoryFolder::with(BTreeMap::from([(NAME.to_owned(), bytes)]));
    let reading = read(&folder, (NUMBER, SALT, SEED)).expect("a folder that can be read");
    for error in
        [&reading.forward, &reading.backward].into_iter().filter_map(|read| read.as_ref().err())
    {
        assert!(is_one_line(&error.to_string()), "{error}");
    }
    if !reading.damages.is_empty() {
        return;
    }
    let forward = reading.forward.expect("no damage");
    let mut backward = reading.backward.expect("no damage");
    backward.reverse();
    assert!(forward == backward && forward == reading.salvaged);
    assert!(forward.is_sorted_by(|one, other| (&one.0, !one.1) < (&other.0, !other.1)));
    let found: Result<Vec<_>, Error> = reading.found.into_iter().collect();
    assert!(found.expect("no damage").into_iter().eq(forward.into_iter().map(Some)));
}

/// Makes the checksums of the header, the frames and the footer valid.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < HEADER + FOOTER {
        return bytes;
    }
    bytes[..16].copy_from_slice(b"koeltbl\n\x01\0\0\0\0\0\0\0");
    set(&mut bytes, 16, SALT);
    set(&mut bytes, 24, NUMBER);
    let sum = xxh3_64(&bytes[..32]);
    set(&mut bytes, 32, sum);
    let (mut at, footer) = (HEADER, bytes.len() - FOOTER);
    while at + FRAME <= footer {
        let stored: [u8; 4] = bytes[at + 12..at + 16].try_into().expect("four bytes");
        let end = at.saturating_add(FRAME).saturating_add(u32::from_le_bytes(stored) as usize);
        if end > footer {
            break;
        }
        let sum = checksum(SALT, NUMBER, at, 0, &bytes[at + 8..end]);
        set(&mut bytes, at, sum);
        at = end;
    }
    bytes[footer + 16..footer + 24].copy_from_slice(b"koelend\n");
    let sum = checksum(SALT, NUMBER, footer, 0, &bytes[footer..footer + 24]);
    set(&mut bytes, footer + 24, sum);
    bytes
}

/// Small tables of every codec and of several blocks.
///
/// # Panics
/// If one cannot be built.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let tables = (0..24_u8).map(|number| {
        let mut random = Random::new(u64::from(number));
        let mut entries: Vec<OwnedEntry> = Vec::new();
        for sequence in 0..[0, 1, 3, 20, 60][random.below(5)] {
            let key =
                [&b"key"[..random.below(4)], &[b'a' + number, 255][..random.below(3)]].concat();
            let value = (!random.chance(30)).then(|| vec![number; random.below(30)]);
            entries.push((key, sequence, value));
        }
        entries.sort_by(|one, other| (&one.0, !one.1).cmp(&(&other.0, !other.1)));
        let folder = MemoryFolder::new();
        let shape = ([20, 60, 4096][random.below(3)], number % 3);
        build(&folder, (NUMBER, SALT, SEED), shape, &entries).expect("a table");
        folder.contents().remove(NAME).expect("a table")
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_sound_and_as_if_sealed_here() {
        for seed in seeds() {
            let folder = MemoryFolder::with(BTreeMap::from([(NAME.to_owned(), seed.clone())]));
            let reading = read(&folder, (NUMBER, SALT, SEED)).unwrap();
            assert_eq!(reading.damages, []);
            assert_eq!(sealed(seed.clone()), seed);
        }
    }

    /// Returns what `verify` says of a seed in which `change` was made to the first bytes that are
    /// `part`, with checksums that fit.
    fn damages_after(entries: &[OwnedEntry], part: &[u8], change: &[(usize, u8)]) -> usize {
        let folder = MemoryFolder::new();
        build(&folder, (NUMBER, SALT, SEED), (20, 0), entries).unwrap();
        let mut bytes = folder.contents().remove(NAME).unwrap();
        let at = bytes.windows(part.len()).position(|bytes| bytes == part).expect("these bytes");
        change.iter().for_each(|&(place, byte)| bytes[at + place] = byte);
        let bytes = sealed(bytes);
        assert_sound_or_reported(bytes.clone());
        let folder = MemoryFolder::with(BTreeMap::from([(NAME.to_owned(), bytes)]));
        read(&folder, (NUMBER, SALT, SEED)).unwrap().damages.len()
    }

    /// A get of `b` would look for version 3 in the first block, and a cursor in the second.
    #[test]
    fn an_index_place_between_the_versions_of_a_key_is_damage() {
        let entry = |key: &[u8], sequence| (key.to_vec(), sequence, Some(vec![7; 20]));
        let entries = [entry(b"a", 1), entry(b"b", 3)];
        // Nothing shared, a key of 1 byte, a value of 3, sequence number 0, `a`.
        let place = [0, 1, 3, 0, b'a'];
        assert_eq!(damages_after(&entries, &place, &[]), 0);
        assert_eq!(damages_after(&entries, &place, &[(4, b'b'), (3, 5)]), 1);
    }

    /// A search for `d0` would end below the first entry of the root, though `e` follows.
    #[test]
    fn a_root_with_other_places_than_the_blocks_below_is_damage() {
        let entries: Vec<_> =
            (b'a'..=b'p').map(|key| (vec![key], u64::from(key), Some(vec![7; 20]))).collect();
        // As above, but with an offset of 2 bytes: the first place in the root.
        let place = [0, 1, 4, 0, b'd'];
        assert_eq!(damages_after(&entries, &place, &[]), 0);
        assert!(damages_after(&entries, &place, &[(4, b'e'), (3, 200)]) > 0);
    }
}
