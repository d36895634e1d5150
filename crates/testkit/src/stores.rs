//! Stores of unknown bytes: a fuzzer's input becomes a manifest, segments and hints. Every value
//! that the store returns must be in one of them, under a valid checksum.
//!
//! An input is a list of pieces of files (`files_of`), so that a change of one file does not move
//! the others, and a few bytes can encode a long value. [`seal`] makes the checksums valid again,
//! because random changes rarely reach the code behind them. Both, and the search for values,
//! follow docs/FORMAT-STORES.md and share no code with the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LogOptions, LogStore};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::exercise::is_one_line;
use crate::storage::MemoryFolder;

/// New stores have the same seed, so that an input does the same each time.
fn options() -> LogOptions {
    LogOptions::default().background_compaction(false).seed(7)
}

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Keys with the values that they have had.
type Values = BTreeSet<(Vec<u8>, Vec<u8>)>;

const FIRST: usize = 40;
/// Offset of the checksum of the header of a manifest.
const MANIFEST_CHECKSUM: usize = 24;
/// The shortest record.
const LEAST: usize = 24;
const BLOCK: usize = 65_536;
/// The longest file that fills make: long enough for values and records of many blocks. A trial
/// copies all files several times.
const FILLED: usize = 1 << 20;

/// The kind of a piece, in the two lowest bits of its first byte; the other bits are a number or a
/// byte.
const MANIFEST: u8 = 0;
const LOG: u8 = 1;
const HINT: u8 = 2;
const FILL: u8 = 3;

/// Decodes the files of an input. A piece is a byte, a length of 16 bits, and that many bytes to
/// append to a file: the manifest, or log or hint 1 to 64. A piece of equal bytes, eight for each
/// unit of its length, is appended to the file of the previous piece, up to a MiB in all.
pub(crate) fn files_of(mut input: &[u8]) -> Files {
    let mut files = Files::new();
    let mut name = "MANIFEST".to_owned();
    while let [first, low, high, rest @ ..] = input {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let more = first >> 2;
        if first & 3 == FILL {
            let file: &mut Vec<u8> = files.entry(name.clone()).or_default();
            file.resize((file.len() + 8 * len).min(FILLED.max(file.len())), more);
            input = rest;
            continue;
        }
        name = match first & 3 {
            LOG => format!("{:016x}.log", 1 + more),
            HINT => format!("{:016x}.hint", 1 + more),
            _ => "MANIFEST".to_owned(),
        };
        let (bytes, behind) = rest.split_at(len.min(rest.len()));
        files.entry(name.clone()).or_default().extend_from_slice(bytes);
        input = behind;
    }
    files
}

/// An input that decodes to these files, which have the names of [`files_of`].
pub(crate) fn input_of(files: &Files) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, bytes) in files {
        let kind = match name.rsplit_once('.') {
            Some((_, "log")) => LOG,
            Some((_, "hint")) => HINT,
            _ => MANIFEST,
        };
        let number = if kind == MANIFEST { 1 } else { number_in(name) };
        let first = kind | u8::try_from(number - 1).expect("a number of an input") << 2;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|&&byte| byte == 0).count().min(8 * 65_535) / 8;
            if zeros > 8 {
                piece(&mut input, FILL, zeros, &[]);
                rest = &rest[8 * zeros..];
                continue;
            }
            let until = (8..rest.len()).find(|&at| rest[at..].starts_with(&[0; 128]));
            let (bytes, behind) = rest.split_at(until.unwrap_or(rest.len()).min(65_535));
            piece(&mut input, first, bytes.len(), bytes);
            rest = behind;
        }
    }
    assert!(files_of(&input) == *files, "an input that stands for other files");
    input
}

fn piece(input: &mut Vec<u8>, first: u8, len: usize, bytes: &[u8]) {
    input.push(first);
    input.extend(u16::try_from(len).expect("a length of a piece").to_le_bytes());
    input.extend(bytes);
}

/// Returns the number in the name of a log or a hint.
pub(crate) fn number_in(name: &str) -> u64 {
    let digits = name.split('.').next().unwrap_or_default();
    u64::from_str_radix(digits, 16).expect("a name of a file of a store")
}

pub(crate) fn salt_of(files: &Files) -> u64 {
    files.get("MANIFEST").map_or(0, |bytes| number::<8>(bytes, 16))
}

/// The little-endian number of `BYTES` bytes at `at`; 0 if `bytes` ends before.
fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..at + BYTES).unwrap_or_default();
    part.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

pub(crate) fn set(bytes: &mut [u8], at: usize, number: u64) {
    if let Some(part) = bytes.get_mut(at..at + 8) {
        part.copy_from_slice(&number.to_le_bytes());
    }
}

/// Returns the checksum of a body or a block.
pub(crate) fn checksum(salt: u64, log: u64, at: usize, meta: u64, content: &[u8]) -> u64 {
    let numbers = [xxh3_64(content), meta, log, at as u64];
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
    xxh3_64_with_seed(&bytes, salt)
}

/// The offsets of the parts of a record in its log.
pub(crate) struct Record {
    meta: u64,
    /// Whether the lengths have their minimal width.
    fits: bool,
    key: Range<usize>,
    /// The end of the body.
    body: usize,
    /// The bytes of a value that are under one checksum with the key, or of each block of a large
    /// one.
    value: Vec<Range<usize>>,
    pub(crate) end: usize,
}

impl Record {
    /// Returns the record that starts at `at`, if it is complete.
    pub(crate) fn at(log: &[u8], at: usize) -> Option<Self> {
        let meta = number::<8>(log, at + 8);
        let len = |number, longest| {
            let more = if meta & longest == 0 { 0 } else { 1 << 32 };
            usize::try_from(number + more).ok()
        };
        let wide = meta & 0x40 != 0;
        let (head, lens) = if wide {
            (24, [number::<4>(log, at + 16), number::<4>(log, at + 20)])
        } else {
            (20, [number::<2>(log, at + 16), number::<2>(log, at + 18)])
        };
        let (key_len, value_len) = (len(lens[0], 0x10)?, len(lens[1], 0x20)?);
        let fits = wide == (key_len.max(value_len) > 0xffff);
        let key = at + head..at + head + key_len;
        let large = meta & 15 == 2;
        let (mut value, mut end) = (Vec::new(), key.end);
        if !large {
            value.push(end..end + value_len);
            end += value_len;
        }
        let body = end.next_multiple_of(8);
        end = body;
        if body > log.len() || large && value_len > log.len() {
            return None;
        }
        for start in (0..if large { value_len } else { 0 }).step_by(BLOCK) {
            let block = end..end + BLOCK.min(value_len - start);
            end = block.end.next_multiple_of(8) + 8;
            value.push(block);
        }
        let is_there = at + LEAST <= log.len() && end <= log.len();
        is_there.then_some(Self { meta, fits, key, body, value, end })
    }

    /// Returns the offset and the correct value of each checksum.
    pub(crate) fn checksums(
        &self,
        salt: u64,
        number: u64,
        log: &[u8],
        at: usize,
    ) -> Vec<(usize, u64)> {
        let body = checksum(salt, number, at, self.meta, &log[at + 16..self.body]);
        let of_block = |block: &Range<usize>| {
            let end = block.end.next_multiple_of(8);
            (end, checksum(salt, number, block.start, 0, &log[block.start..end]))
        };
        let blocks = self.value.iter().filter(|_| self.meta & 15 == 2).map(of_block);
        [(at, body)].into_iter().chain(blocks).collect()
    }
}

/// Makes the checksums of a header, which is at its end, and of the records behind it valid.
fn seal_records(bytes: &mut [u8], end: usize, salt: u64, number: u64) {
    let header = xxh3_64(&bytes[..bytes.len().min(end)]);
    set(bytes, end, header);
    let mut at = end + 8;
    while let Some(record) = Record::at(bytes, at) {
        for (place, checksum) in record.checksums(salt, number, bytes, at) {
            set(bytes, place, checksum);
        }
        at = record.end;
    }
}

/// A manifest of these records, each with a key and numbers.
#[must_use]
pub fn manifest(magic: &[u8; 8], salt: u64, records: &[(&str, Vec<u64>)]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend([1, salt, 0].into_iter().flat_map(u64::to_le_bytes));
    for ((key, numbers), sequence) in records.iter().zip(1..) {
        let more = if sequence < records.len() as u64 { 0x80 } else { 0 };
        bytes.extend([0, sequence << 8 | more | 1].into_iter().flat_map(u64::to_le_bytes));
        let lens = [key.len(), 8 * numbers.len()].map(|len| u16::try_from(len).expect("short"));
        bytes.extend(lens.into_iter().flat_map(u16::to_le_bytes));
        bytes.extend(key.bytes().chain(numbers.iter().flat_map(|number| number.to_le_bytes())));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    seal_records(&mut bytes, MANIFEST_CHECKSUM, salt, 0);
    bytes
}

/// Makes the checksums valid, but not those of tables, and gives logs and hints the salt of the
/// manifest.
pub fn seal(files: &mut Files) {
    let salt = salt_of(files);
    for (name, bytes) in files {
        if name == "MANIFEST" {
            seal_records(bytes, MANIFEST_CHECKSUM, salt, 0);
        } else if name.ends_with(".log") {
            set(bytes, 16, salt);
            seal_records(bytes, FIRST - 8, salt, number_in(name));
        } else if name.ends_with(".hint") {
            set(bytes, 16, salt);
            let content = bytes.len().saturating_sub(8);
            let checksum = xxh3_64(&bytes[..content]);
            set(bytes, content, checksum);
        }
    }
}

/// The keys and values of all records in all logs whose checksums are valid with this salt.
fn values_in(files: &Files, salt: u64) -> Values {
    let mut values = Values::new();
    for (name, log) in files.iter().filter(|(name, _)| name.ends_with(".log")) {
        for at in (FIRST..log.len()).step_by(8) {
            let is_value = matches!(number::<8>(log, at + 8) & 15, 1 | 2);
            let record = is_value.then(|| Record::at(log, at)).flatten();
            let Some(record) = record.filter(|record| record.fits) else { continue };
            let checksums = record.checksums(salt, number_in(name), log, at);
            if checksums.iter().all(|&(place, checksum)| number::<8>(log, place) == checksum) {
                let value = record.value.iter().flat_map(|part| &log[part.clone()]);
                values.insert((log[record.key.clone()].to_vec(), value.copied().collect()));
            }
        }
    }
    values
}

/// Checks the promise of a store for any files: they are refused with a reason in one line, or
/// every value in the store was written. `whole` means that no checksum was forged; then an
/// accepted store also takes writes, and has them after it is reopened.
fn arbitrary_files(files: Files, whole: bool) -> Result<(), Error> {
    let mut values = values_in(&files, salt_of(&files));
    let salvaged = salvage(&files);
    let is_new = !files.contains_key("MANIFEST");
    let folder = Arc::new(MemoryFolder::with(files.clone()));
    let read = options().read_only(true).open_in(folder.clone());
    let read = read.map(|store| contents_of(&store)).inspect_err(one_line);
    assert!(folder.contents() == files, "a read-only store has written");
    let open = || options().open_in(folder.clone());
    let store = open();
    let found = store.as_ref().map(contents_of);
    assert!(is_new || read.ok() == found.ok(), "a read-only store finds something else");
    let store = store.inspect_err(one_line)?;
    let sound = read_all_ways(&store, &values);
    if whole && sound && !is_new && store.open_report().torn.is_none() {
        let all = Some(contents_of(&store));
        assert!(salvaged == all, "what was salvaged of a sound store is not what is in it");
    }
    let written = (b"a key of the trial".to_vec(), b"a value".to_vec());
    let put = store.put(&written.0, &written.1, Durability::None);
    if let Err(error) = &put {
        one_line(error);
    }
    values.insert(written.clone());
    for key in values.iter().step_by(3).map(|(key, _)| key).filter(|&key| *key != written.0) {
        if let Err(error) = store.delete(key, Durability::None) {
            one_line(&error);
        }
    }
    if let Err(error) = store.compact() {
        one_line(&error);
    }
    read_all_ways(&store, &values);
    let closed = store.close();
    let again = open();
    if let Ok(store) = &again {
        read_all_ways(store, &values);
    }
    if whole && put.is_ok() && closed.is_ok() {
        let found = again.and_then(|store| store.get(&written.0));
        assert!(matches!(&found, Ok(Some(value)) if *value == written.1), "{found:?}");
    }
    Ok(())
}

/// Salvages any files, which may belong to several stores: every recovered value was written.
/// Returns the content of the new store if there was no damage.
fn salvage(files: &Files) -> Option<Values> {
    let logs = files.iter().filter(|(name, _)| name.ends_with(".log"));
    let salts: BTreeSet<u64> =
        logs.map(|(_, log)| number::<8>(log, 16)).chain([salt_of(files)]).collect();
    let values = salts.into_iter().flat_map(|salt| values_in(files, salt)).collect();
    let store = options().open_in(Arc::new(MemoryFolder::new())).expect("a new store");
    let damaged = MemoryFolder::with(files.clone());
    let salvaged = store.salvage_in(&damaged, |read, all| assert!(read <= all));
    assert!(damaged.contents() == *files, "the damaged store was changed");
    assert!(read_all_ways(&store, &values), "what was salvaged is not sound");
    let salvaged = salvaged.inspect_err(one_line).ok()?;
    assert!(salvaged.damages.iter().all(|damage| is_one_line(&damage.to_string())));
    salvaged.damages.is_empty().then(|| contents_of(&store))
}

/// Returns everything that can be read of a store.
fn contents_of(store: &LogStore) -> Values {
    store.iter().flatten().collect()
}

/// Calls every query of a store. Returns whether it is sound.
fn read_all_ways(store: &LogStore, values: &Values) -> bool {
    let keys: BTreeSet<&Vec<u8>> = values.iter().map(|(key, _)| key).collect();
    for key in keys {
        match store.get(key) {
            Ok(Some(value)) => assert!(values.contains(&(key.clone(), value)), "not written"),
            Ok(None) => {}
            Err(error) => one_line(&error),
        }
    }
    assert!(!matches!(store.get(b"a key that nobody wrote"), Ok(Some(_))));
    for entry in store {
        match entry {
            Ok(entry) => assert!(values.contains(&entry), "not written: {entry:?}"),
            Err(error) => one_line(&error),
        }
    }
    for key in store.keys().flatten() {
        assert!(values.iter().any(|(written, _)| *written == key), "not written: {key:?}");
    }
    assert!(is_one_line(&format!("{:?}", store.stats())));
    let verified = store.verify(|read, all| assert!(read <= all)).inspect_err(one_line);
    verified.is_ok_and(|verified| {
        assert!(verified.damages.iter().all(|damage| is_one_line(&damage.to_string())));
        verified.damages.is_empty()
    })
}

pub(crate) fn one_line(error: &Error) {
    assert!(is_one_line(&error.to_string()), "{error}");
}

/// Checks the promise of a store for the files of a fuzzer's input, unchanged and with valid
/// checksums: they are refused with a reason in one line, or every value was written.
///
/// # Panics
/// If the promise is broken.
pub fn fuzzed_bytes(input: &[u8]) {
    let mut files = files_of(input);
    // Only the assertions matter.
    drop(arbitrary_files(files.clone(), true));
    seal(&mut files);
    drop(arbitrary_files(files, false));
}

/// The seed stores for fuzzing: closed or crashed, with and without hints, with one to three logs,
/// and with batches, tombstones and large values.
///
/// # Panics
/// If a store refuses its writes.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for rounds in 0..4 {
        for closed in [true, false] {
            let files = store_of(rounds, closed);
            let without = files.iter().filter(|(name, _)| !name.ends_with(".hint"));
            seeds.push(input_of(
                &without.map(|(name, bytes)| (name.clone(), bytes.clone())).collect(),
            ));
            seeds.push(input_of(&files));
        }
    }
    seeds.dedup();
    seeds
}

fn store_of(rounds: u8, closed: bool) -> Files {
    let folder = MemoryFolder::new();
    let options = options().segment_bytes(4096);
    let store = options.open_in(Arc::new(folder.clone())).expect("a new store");
    let put = |key: &[u8], value: &[u8], durability| {
        store.put(key, value, durability).expect("a write");
    };
    for round in 0..rounds {
        for key in 0..4 {
            put(&[b'k', key], &[round; 20][..usize::from(5 * key)], Durability::None);
        }
        put(b"", b"the empty key", Durability::Synced);
        let mut batch = Batch::new();
        batch.put(b"a", &[round]).and_then(|it| it.put(b"b", b"")).expect("short");
        batch.delete(&[b'k', round]).expect("short");
        store.write(&batch, Durability::None).expect("a write");
        if round == 1 {
            put(b"large", &vec![0; BLOCK + 100], Durability::None);
        }
        if round == 0 {
            put(&[b'k', 1], b"again", Durability::None);
            store.compact().expect("a compaction");
        }
    }
    let files = folder.contents();
    if closed {
        store.close().expect("an end");
        return folder.contents();
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_stores_with_all_their_values_and_sealing_does_not_change_them() {
        let seeds = seeds();
        assert!(seeds.len() >= 12 && seeds.iter().all(|seed| seed.len() <= 4096));
        for seed in &seeds {
            let files = files_of(seed);
            let mut sealed = files.clone();
            seal(&mut sealed);
            assert!(sealed == files, "sealing changed a sound store");
            assert!(arbitrary_files(files, true).is_ok());
        }
        let values = |files: &Files| values_in(files, salt_of(files)).len();
        let most = seeds.iter().map(|seed| values(&files_of(seed))).max();
        assert!(most >= Some(10), "{most:?}");
    }
}
