//! Tables of unknown bytes: a fuzzer's input becomes the table file of an ordered store, whose
//! manifest fits it. The promise is that of `ordered.rs`: all ways of reading it agree, or `verify`
//! reports damage.
//!
//! `sealed` makes the checksums valid again, because random changes rarely reach the code behind
//! them. It follows docs/FORMAT-STORES.md and shares no code with the store.

use std::sync::Arc;

use koel_store::{Compression, Durability, LsmOptions, LsmStore};
use xxhash_rust::xxh3::xxh3_64;

use crate::ordered::options;
use crate::storage::{MemoryFolder, Random};
use crate::stores::{Files, arbitrary_files, checksum, manifest, set};

/// The first table of a store, behind the log of its entries and the next one.
const NAME: &str = "0000000000000003.table";
const NUMBER: u64 = 3;
/// The seed of a store is its salt, too.
const SEED: u64 = 7;

const HEADER: usize = 40;
const FRAME: usize = 20;
const FOOTER: usize = 32;

/// Reads the bytes as a table, as they are and with checksums that fit.
///
/// # Panics
/// If something is wrong with the store.
pub fn fuzzed_bytes(bytes: &[u8]) {
    drop(arbitrary_files::<LsmStore>(files_with(bytes.to_vec()), false));
    drop(arbitrary_files::<LsmStore>(files_with(sealed(bytes.to_vec())), false));
}

/// A store whose manifest names this table, with what the table says of itself.
fn files_with(table: Vec<u8>) -> Files {
    let number = |at: usize| {
        let bytes = table.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let properties = usize::try_from(number(table.len().saturating_sub(FOOTER))).unwrap_or(0);
    let property = |index: usize| number(properties.saturating_add(FRAME + 8 * index));
    let run = vec![NUMBER, table.len() as u64, property(5), property(9), property(10)];
    let next = property(10).saturating_add(1).clamp(1, 1 << 54);
    let store = vec![1, SEED, next, NUMBER + 1, 0, 0];
    let manifest = manifest(b"koellsm\n", SEED, &[("store", store), ("run", run)]);
    Files::from([("MANIFEST".to_owned(), manifest), (NAME.to_owned(), table)])
}

/// Makes the checksums of the header, the frames and the footer valid.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < HEADER + FOOTER {
        return bytes;
    }
    bytes[..16].copy_from_slice(b"koeltbl\n\x01\0\0\0\0\0\0\0");
    set(&mut bytes, 16, SEED);
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
        let sum = checksum(SEED, NUMBER, at, 0, &bytes[at + 8..end]);
        set(&mut bytes, at, sum);
        at = end;
    }
    bytes[footer + 16..footer + 24].copy_from_slice(b"koelend\n");
    let sum = checksum(SEED, NUMBER, footer, 0, &bytes[footer..footer + 24]);
    set(&mut bytes, footer + 24, sum);
    bytes
}

/// Small tables of every codec and of several blocks, with old versions and deletions.
///
/// # Panics
/// If one cannot be built.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let tables = (0..24_u8).map(|number| {
        let mut random = Random::new(u64::from(number));
        let shapes = [Compression::None, Compression::Lz4];
        let options = options().block_bytes([128, 4096][random.below(2)]);
        let options = options.compression(shapes[usize::from(number % 2)]);
        let mut puts = Vec::new();
        for _ in 0..[1, 3, 20, 60][random.below(4)] {
            let key =
                [&b"key"[..random.below(4)], &[b'a' + number, 255][..random.below(3)]].concat();
            let is_value = puts.is_empty() || !random.chance(30);
            let value = is_value.then(|| vec![number; random.below(60)]);
            puts.push((key, value));
        }
        table_of(options, &puts)
    });
    tables.collect()
}

/// Returns the table of a store into which all this was put, or deleted, in this order, with some
/// ranges.
fn table_of(options: LsmOptions, puts: &[(Vec<u8>, Option<Vec<u8>>)]) -> Vec<u8> {
    let folder = MemoryFolder::new();
    let options = options.memtable_bytes(1 << 20);
    let store = options.open_in(Arc::new(folder.clone())).expect("a new store");
    let mut snapshots = Vec::new();
    for (key, value) in puts {
        let put = match value {
            Some(value) => store.put(key, value, Durability::None),
            None if key.len() % 2 == 1 => store.delete_prefix(key, Durability::None),
            None => store.delete(key, Durability::None),
        };
        put.expect("a write");
        // All versions stay, and what a deletion hides.
        snapshots.push(store.snapshot());
    }
    store.flush().expect("a flush");
    folder.contents().remove(NAME).expect("a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damages(table: Vec<u8>) -> usize {
        let folder = MemoryFolder::with(files_with(table));
        let store = options().open_in(Arc::new(folder)).expect("a table that opens");
        store.verify(|_, _| ()).expect("a folder that can be read").damages.len()
    }

    #[test]
    fn seeds_are_sound_and_as_if_sealed_here() {
        for seed in seeds() {
            assert_eq!(damages(seed.clone()), 0);
            assert_eq!(sealed(seed.clone()), seed);
        }
    }

    /// A table of keys of one byte, each in a block of its own.
    fn blocks_of(keys: &[u8]) -> Vec<u8> {
        let puts: Vec<_> = keys.iter().map(|key| (vec![*key], Some(vec![7; 140]))).collect();
        table_of(options().block_bytes(128).compression(Compression::None), &puts)
    }

    /// Changes the last bytes that are `part`, with checksums that fit.
    fn changed(mut table: Vec<u8>, part: &[u8], change: &[(usize, u8)]) -> Vec<u8> {
        let at = table.windows(part.len()).rposition(|bytes| bytes == part).expect("these bytes");
        change.iter().for_each(|&(place, byte)| table[at + place] = byte);
        let table = sealed(table);
        drop(arbitrary_files::<LsmStore>(files_with(table.clone()), false));
        table
    }

    /// A get of `b` would look for version 2 in the first block, and a cursor in the second.
    #[test]
    fn an_index_place_between_the_versions_of_a_key_is_damage() {
        let table = blocks_of(b"ab");
        // Nothing shared, a key of 1 byte, a value of 3, sequence number 0, `a`.
        let place = [0, 1, 4, 0, b'a'];
        assert_eq!(damages(changed(table.clone(), &place, &[])), 0);
        assert_eq!(damages(changed(table, &place, &[(4, b'b'), (3, 5)])), 1);
    }

    /// A search for `m0` would end below the first entry of the root, though `n` follows.
    #[test]
    fn a_root_with_other_places_than_the_blocks_below_is_damage() {
        let keys: Vec<u8> = (b'a'..=b'z').collect();
        let table = blocks_of(&keys);
        // As above, but with an offset of 2 bytes: in the block of the lowest index, and in the
        // root behind it.
        let place = |key| [0, 1, 5, 0, key];
        let count = |key| table.windows(5).filter(|bytes| **bytes == place(key)).count();
        let first = keys.iter().copied().find(|&key| count(key) == 2).expect("a place in the root");
        assert_eq!(damages(changed(table.clone(), &place(first), &[])), 0);
        assert!(damages(changed(table.clone(), &place(first), &[(4, first + 1), (3, 200)])) > 0);
    }
}
