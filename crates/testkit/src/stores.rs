//! Stores of unknown bytes: a fuzzer's input becomes a manifest, logs, and hints or tables. The
//! store is refused with a reason in one line, or reports damage, or has what was written. Every
//! value of a store with hints must be in a log, under a valid checksum; `ordered.rs` says what
//! must be so with tables.
//!
//! An input is a list of pieces of files (`files_of`), so that a change of one file does not move
//! the others, and a few bytes can encode a long value. [`seal`] makes the checksums valid again,
//! because random changes rarely reach the code behind them. Both, and the search for values,
//! follow docs/FORMAT-STORES.md and share no code with the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LogOptions, LogStore, SalvageReport, VerifyReport};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::exercise::is_one_line;
use crate::storage::{MemoryFolder, State};

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Keys with the values that they have had.
pub(crate) type Values = BTreeSet<(Vec<u8>, Vec<u8>)>;

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
const OTHER: u8 = 2;
const FILL: u8 = 3;

/// Decodes the files of an input. A piece is a byte, a length of 16 bits, and that many bytes to
/// append to a file: the manifest, the guide of an ordered store, or 1 to 64 of logs and of the
/// files with another ending. A piece of equal bytes, eight for each unit of its length, is
/// appended to the file of the previous piece, up to a MiB in all.
fn files_of(mut input: &[u8], ending: &str) -> Files {
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
            OTHER => format!("{:016x}.{ending}", 1 + more),
            _ if more > 0 && ending == "table" => "GUIDE".to_owned(),
            _ => "MANIFEST".to_owned(),
        };
        let (bytes, behind) = rest.split_at(len.min(rest.len()));
        files.entry(name.clone()).or_default().extend_from_slice(bytes);
        input = behind;
    }
    files
}

/// An input that decodes to these files, which have the names of [`files_of`].
fn input_of(files: &Files, ending: &str) -> Vec<u8> {
    let mut input = Vec::new();
    for (name, bytes) in files {
        let kind = match name.rsplit_once('.') {
            Some((_, "log")) => LOG,
            Some(_) => OTHER,
            None => MANIFEST,
        };
        let number = match &name[..] {
            "MANIFEST" => 1,
            "GUIDE" => 2,
            _ => number_in(name),
        };
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
    assert!(files_of(&input, ending) == *files, "an input that stands for other files");
    input
}

fn piece(input: &mut Vec<u8>, first: u8, len: usize, bytes: &[u8]) {
    input.push(first);
    input.extend(u16::try_from(len).expect("a length of a piece").to_le_bytes());
    input.extend(bytes);
}

/// Returns the number in the name of a file.
fn number_in(name: &str) -> u64 {
    let digits = name.split('.').next().unwrap_or_default();
    u64::from_str_radix(digits, 16).expect("a name of a file of a store")
}

fn salt_of(files: &Files) -> u64 {
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
struct Record {
    meta: u64,
    /// Whether the lengths have their minimal width.
    fits: bool,
    key: Range<usize>,
    /// The end of the body.
    body: usize,
    /// The bytes of a value that are under one checksum with the key, or of each block of a large
    /// one.
    value: Vec<Range<usize>>,
    end: usize,
}

impl Record {
    /// Returns the record that starts at `at`, if it is complete.
    fn at(log: &[u8], at: usize) -> Option<Self> {
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
    fn checksums(&self, salt: u64, number: u64, log: &[u8], at: usize) -> Vec<(usize, u64)> {
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

/// The keys and values of all records in all logs whose checksums are valid with one of these
/// salts.
fn values_in(files: &Files, salts: impl IntoIterator<Item = u64> + Clone) -> Values {
    let mut values = Values::new();
    for (name, log) in files.iter().filter(|(name, _)| name.ends_with(".log")) {
        for at in (FIRST..log.len()).step_by(8) {
            let is_value = matches!(number::<8>(log, at + 8) & 15, 1 | 2);
            let record = is_value.then(|| Record::at(log, at)).flatten();
            let Some(record) = record.filter(|record| record.fits) else { continue };
            let is_valid = |salt| {
                let checksums = record.checksums(salt, number_in(name), log, at);
                checksums.iter().all(|&(place, checksum)| number::<8>(log, place) == checksum)
            };
            if salts.clone().into_iter().any(is_valid) {
                let value = record.value.iter().flat_map(|part| &log[part.clone()]);
                values.insert((log[record.key.clone()].to_vec(), value.copied().collect()));
            }
        }
    }
    values
}

/// A store under trial.
pub(crate) trait Subject: Sized {
    /// The ending of its files beside logs.
    const ENDING: &str;

    /// Opens a small one without background work. New ones have the same seed, so that an input
    /// does the same each time.
    fn open_small(folder: &MemoryFolder, read_only: bool) -> Result<Self, Error>;

    /// Reads it in all ways, if its logs hold these values. Returns its content, if an iteration
    /// reads all of it, and whether it is sound.
    fn read_all_ways(&self, values: &Values) -> (Option<State>, bool);

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error>;
    /// Deletes the keys from this one on, if the store can, and returns whether it can.
    fn delete_from(&self, _key: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }
    /// Compacts all that it has.
    fn compact(&self) -> Result<(), Error>;
    fn salvage(&self, damaged: &MemoryFolder) -> Result<SalvageReport, Error>;
    fn close(self) -> Result<(), Error>;
}

impl Subject for LogStore {
    const ENDING: &str = "hint";

    fn open_small(folder: &MemoryFolder, read_only: bool) -> Result<Self, Error> {
        let options = LogOptions::default().background_compaction(false).seed(7);
        options.segment_bytes(4096).read_only(read_only).open_in(Arc::new(folder.clone()))
    }

    fn read_all_ways(&self, values: &Values) -> (Option<State>, bool) {
        let keys: BTreeSet<&Vec<u8>> = values.iter().map(|(key, _)| key).collect();
        for &key in &keys {
            match self.get(key) {
                Ok(Some(value)) => assert!(values.contains(&(key.clone(), value)), "not written"),
                Ok(None) => {}
                Err(error) => one_line(&error),
            }
        }
        assert!(!matches!(self.get(b"a key that nobody wrote"), Ok(Some(_))));
        for entry in self {
            match entry {
                Ok(entry) => assert!(values.contains(&entry), "not written: {entry:?}"),
                Err(error) => one_line(&error),
            }
        }
        assert!(self.keys().flatten().all(|key| keys.contains(&key)), "a key not written");
        assert!(is_one_line(&format!("{:?}", self.stats())));
        let is_whole = is_whole(self.verify(|read, all| assert!(read <= all)));
        (self.iter().collect::<Result<_, _>>().ok(), is_whole && self.open_report().torn.is_none())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get(key)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.write(batch, durability)
    }

    fn compact(&self) -> Result<(), Error> {
        self.compact().map(drop)
    }

    fn salvage(&self, damaged: &MemoryFolder) -> Result<SalvageReport, Error> {
        self.salvage_in(damaged, |read, all| assert!(read <= all))
    }

    fn close(self) -> Result<(), Error> {
        self.close()
    }
}

/// Whether nothing is damaged.
pub(crate) fn is_whole(verified: Result<VerifyReport, Error>) -> bool {
    verified.inspect_err(one_line).is_ok_and(|report| {
        assert!(report.damages.iter().all(|damage| is_one_line(&damage.to_string())));
        report.damages.is_empty()
    })
}

pub(crate) fn one_line(error: &Error) {
    assert!(is_one_line(&error.to_string()), "{error}");
}

/// A batch of one put, or of one deletion.
fn batch(key: &[u8], value: Option<&[u8]>) -> Batch {
    let mut batch = Batch::new();
    match value {
        Some(value) => batch.put(key, value),
        None => batch.delete(key),
    }
    .expect("short");
    batch
}

/// Checks the promise of a store for any files: they are refused with a reason in one line, or
/// every value in the store was written. `whole` means that no checksum was forged; then an
/// accepted store also takes writes, and has them after it is reopened.
pub(crate) fn arbitrary_files<S: Subject>(files: Files, whole: bool) -> Result<(), Error> {
    let mut values = values_in(&files, [salt_of(&files)]);
    let salvaged = salvage::<S>(&files);
    let is_new = !files.contains_key("MANIFEST");
    let folder = MemoryFolder::with(files.clone());
    let read = S::open_small(&folder, true).inspect_err(one_line);
    let read = read.ok().map(|store| store.read_all_ways(&values).0);
    assert!(folder.contents() == files, "a read-only store has written");
    let store = S::open_small(&folder, false).inspect_err(one_line);
    let found = store.as_ref().ok().map(|store| store.read_all_ways(&values));
    let (mut expected, is_sound) = found.clone().unwrap_or_default();
    assert!(is_new || read == found.map(|found| found.0), "read-only it finds something else");
    let store = store?;
    // Of tables, a salvage also finds those that no manifest names.
    let must_be_all = whole && is_sound && !is_new && S::ENDING == "hint";
    assert!(
        !must_be_all || salvaged == expected,
        "what was salvaged of a sound store is not what is in it"
    );
    let (key, value) = (b"a key of the trial".to_vec(), vec![7; 2000]);
    values.insert((key.clone(), value.clone()));
    let put = store.write(&batch(&key, Some(&value)), Durability::None).inspect_err(one_line);
    let others = expected.iter().flat_map(State::keys).step_by(3).cloned().collect::<Vec<_>>();
    expected.iter_mut().for_each(|it| drop(it.insert(key.clone(), value.clone())));
    for other in others.into_iter().filter(|other| *other != key) {
        match store.write(&batch(&other, None), Durability::None).inspect_err(one_line) {
            Ok(()) => expected.iter_mut().for_each(|it| drop(it.remove(&other))),
            Err(_) => expected = None,
        }
    }
    let last = expected.as_ref().and_then(|it| it.last_key_value()).map(|(key, _)| key.clone());
    let last = last.filter(|last| *last > key).unwrap_or_else(|| [&key[..], b"0"].concat());
    match store.delete_from(&last).inspect_err(one_line) {
        Ok(true) => expected.iter_mut().for_each(|it| drop(it.split_off(&last))),
        Ok(false) => {}
        Err(_) => expected = None,
    }
    drop(store.compact().inspect_err(one_line));
    store.read_all_ways(&values);
    let closed = store.close();
    let again = S::open_small(&folder, false);
    let found = again.as_ref().ok().map(|store| store.read_all_ways(&values).0);
    if whole && put.is_ok() && closed.is_ok() {
        let store = again.expect("a store that was closed");
        assert_eq!(store.get(&key).expect("a record without damage"), Some(value));
        assert!(expected.is_none() || found == Some(expected), "not what was there");
    }
    Ok(())
}

/// Salvages any files, which may belong to several stores: every recovered value was written.
/// Returns the content of the new store if there was no damage.
fn salvage<S: Subject>(files: &Files) -> Option<State> {
    let logs = files.iter().filter(|(name, _)| name.ends_with(".log"));
    let salts = logs.map(|(_, log)| number::<8>(log, 16)).chain([salt_of(files)]);
    let values = values_in(files, salts.collect::<BTreeSet<_>>());
    let store = S::open_small(&MemoryFolder::new(), false).expect("a new store");
    let damaged = MemoryFolder::with(files.clone());
    let salvaged = store.salvage(&damaged).inspect_err(one_line);
    assert!(damaged.contents() == *files, "the damaged store was changed");
    let (contents, is_sound) = store.read_all_ways(&values);
    assert!(is_sound, "what was salvaged is not sound");
    let damages = salvaged.ok()?.damages;
    assert!(damages.iter().all(|damage| is_one_line(&damage.to_string())));
    contents.filter(|_| damages.is_empty())
}

/// Checks the promise for the files of a fuzzer's input, unchanged and with valid checksums.
pub(crate) fn fuzzed_bytes<S: Subject>(input: &[u8]) {
    let mut files = files_of(input, S::ENDING);
    // Only the assertions matter.
    drop(arbitrary_files::<S>(files.clone(), true));
    seal(&mut files);
    drop(arbitrary_files::<S>(files, false));
}

/// The seed stores for fuzzing: closed or crashed, with and without hints, with one to three logs
/// and up to two tables, and with batches, tombstones and large values.
pub(crate) fn seeds<S: Subject>() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (rounds, closed) in (0..4).flat_map(|rounds| [(rounds, true), (rounds, false)]) {
        let files = store_of::<S>(rounds, closed);
        let mut without = files.clone();
        without.retain(|name, _| !name.ends_with(".hint"));
        seeds.extend([without, files].map(|files| input_of(&files, S::ENDING)));
    }
    seeds.dedup();
    seeds
}

pub(crate) fn store_of<S: Subject>(rounds: u8, closed: bool) -> Files {
    let folder = MemoryFolder::new();
    let store = S::open_small(&folder, false).expect("a new store");
    let write = |batch: &Batch, durability| store.write(batch, durability).expect("a write");
    let put = |key: &[u8], value: &[u8]| write(&batch(key, Some(value)), Durability::None);
    for round in 0..rounds {
        for key in 0..4 {
            put(&[b'k', key], &[round; 20][..usize::from(5 * key)]);
        }
        write(&batch(b"", Some(b"the empty key")), Durability::Synced);
        let mut batch = batch(b"a", Some(&[round]));
        batch.put(b"b", b"").and_then(|it| it.delete(&[b'k', round])).expect("short");
        write(&batch, Durability::None);
        put(b"m", b"of a deleted range");
        store.delete_from(b"m").expect("a deletion");
        if round == 1 {
            put(b"large", &vec![0; BLOCK + 100]);
        }
        if round == 0 {
            put(&[b'k', 1], b"again");
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
    use koel_store::LsmStore;

    fn are_stores<S: Subject>(seeds: &[Vec<u8>]) {
        for seed in seeds {
            let files = files_of(seed, S::ENDING);
            let mut sealed = files.clone();
            seal(&mut sealed);
            assert!(sealed == files, "sealing changed a sound store");
            assert!(arbitrary_files::<S>(files, true).is_ok());
        }
    }

    #[test]
    fn seeds_are_stores_with_all_their_values_and_sealing_does_not_change_them() {
        let seeds = seeds::<LogStore>();
        assert!(seeds.len() >= 12 && seeds.iter().all(|seed| seed.len() <= 4096));
        are_stores::<LogStore>(&seeds);
        let ordered = super::seeds::<LsmStore>();
        are_stores::<LsmStore>(&ordered);
        let is_table = |name: &&String| name.ends_with(".table");
        let tables = |seed: &Vec<u8>| files_of(seed, "table").keys().filter(is_table).count();
        assert!(ordered.iter().map(tables).collect::<BTreeSet<_>>().into_iter().eq(0..3));
        let values = |files: &Files| values_in(files, [salt_of(files)]).len();
        let most = seeds.iter().map(|seed| values(&files_of(seed, "hint"))).max();
        assert!(most >= Some(10), "{most:?}");
    }
}
