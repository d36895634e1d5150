//! Tables beside the entries that they were built from.

mod tables;

use std::path::PathBuf;
use std::sync::Arc;

use testkit::storage::Random;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::*;
use crate::Error;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::store_files::TABLE;
use crate::lsm::entry::check::{self, Owned, entry_of};
use crate::lsm::entry::{Cursor, Lookup};
use crate::lsm::range_deletions::{KeyRange, RangeDeletions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SALT: u64 = 77;
const SEED: u64 = 5;

fn hash(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, SEED)
}

fn options(block_bytes: usize, codec: Codec) -> TableOptions {
    TableOptions { salt: SALT, seed: SEED, block_bytes, codec }
}

/// A folder of tables.
struct Fixture {
    folder: DiskFolder,
    temporary: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = DiskFolder::new(temporary.path()).expect("a folder");
        Self { folder, temporary }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.temporary.path().join(TABLE.name(number))
    }

    fn write(&self, number: u64, bytes: &[u8]) {
        std::fs::write(self.path(number), bytes).expect("a file");
    }

    fn damages(&self, number: u64) -> Result<Vec<crate::Damage>, Error> {
        let mut damages = Vec::new();
        verify(&self.folder, (number, SALT, SEED), &mut damages, &mut |_| ())?;
        Ok(damages)
    }

    /// Returns the entries that salvage finds, and the hashes of those that it does not.
    fn salvaged(&self, number: u64) -> Result<(Vec<Owned>, Vec<u64>, usize), Error> {
        let table = TableFile::open(&self.folder, number, SALT)?.expect("a file");
        let (mut found, mut damages) = (Vec::new(), Vec::new());
        table.entries(&mut damages, &mut |entry| {
            found.push((entry.key.to_vec(), entry.sequence, entry.value.map(<[u8]>::to_vec)));
            Ok(())
        })?;
        Ok((found, table.lost_hashes(SEED, false)?.1, damages.len()))
    }
}

fn build(
    folder: &dyn Folder,
    number: u64,
    options: &TableOptions,
    entries: &[Owned],
) -> Result<TableInfo, Error> {
    let mut builder = TableBuilder::new(folder, number, options)?;
    for entry in entries {
        builder.add(entry_of(entry))?;
    }
    assert_eq!(builder.entries(), entries.len() as u64);
    builder.finish(Arc::default())
}

/// Range deletions with these sequence numbers.
fn range_deletions(sequences: std::ops::Range<u64>) -> Result<Arc<RangeDeletions>, Error> {
    let mut deletions = RangeDeletions::default();
    for sequence in sequences {
        let from = [b'a', u8::try_from(sequence % 200).unwrap_or_default()];
        let keys = KeyRange::of_record(&from, if sequence % 3 == 0 { b"" } else { b"x" })?;
        deletions.add(keys.expect("keys"), sequence, &[sequence]);
    }
    Ok(Arc::new(deletions))
}

fn open(folder: &dyn Folder, number: u64, cache_bytes: u64) -> Result<Arc<Table>, Error> {
    Ok(Arc::new(Table::open(folder, number, SALT, &Arc::new(BlockCache::new(cache_bytes)))?))
}

/// Asks for every key at every kind of sequence number, and for keys that are absent.
fn assert_gets(table: &Table, entries: &[Owned]) -> Outcome {
    for versions in entries.chunk_by(|one, other| one.0 == other.0) {
        let key = &versions[0].0;
        for sequence in versions.iter().flat_map(|version| [version.1, version.1 + 1]) {
            let expected = versions.iter().find(|version| version.1 <= sequence);
            let found = table.get(Lookup::of(key, hash(key), sequence))?;
            let found = found.map(|found| (key.clone(), found.sequence, found.value));
            assert_eq!(found.as_ref(), expected, "{key:?} at {sequence}");
        }
        let before = versions[versions.len() - 1].1.checked_sub(1);
        if let Some(before) = before {
            assert_eq!(table.get(Lookup::of(key, hash(key), before))?, None);
        }
        let absent = [key, &b"\x07"[..]].concat();
        assert_eq!(table.get(Lookup::of(&absent, hash(&absent), u64::MAX))?, None);
    }
    Ok(())
}

fn hashes_of(table: &Table) -> Result<Vec<u64>, Error> {
    let (mut all, mut some) = (Vec::new(), Vec::new());
    let mut hashes = table.hashes();
    while hashes.next(&mut some)? {
        all.extend(&some);
    }
    Ok(all)
}

fn assert_info(info: &TableInfo, entries: &[Owned]) {
    let keys = entries.chunk_by(|one, other| one.0 == other.0).count();
    let value_len = |entry: &Owned| entry.2.as_ref().map_or(0, Vec::len);
    let expected = TableInfo {
        number: info.number,
        bytes: info.bytes,
        entries: entries.len() as u64,
        keys: keys as u64,
        tombstones: entries.iter().filter(|entry| entry.2.is_none()).count() as u64,
        entry_bytes: entries.iter().map(|entry| (entry.0.len() + value_len(entry)) as u64).sum(),
        first_sequence: entries.iter().map(|entry| entry.1).min().unwrap_or(0),
        last_sequence: entries.iter().map(|entry| entry.1).max().unwrap_or(0),
        first_key: entries.first().map_or(Vec::new(), |entry| entry.0.clone()),
        last_key: entries.last().map_or(Vec::new(), |entry| entry.0.clone()),
        range_deletions: Arc::default(),
    };
    assert_eq!(*info, expected);
}

/// Returns entries whose keys are the numbers below `count`.
fn numbered(count: u32, value_len: usize) -> Vec<Owned> {
    let entry = |i| (format!("{i:08}").into_bytes(), 9, Some(vec![7; value_len]));
    (0..count).map(entry).collect()
}

#[test]
fn tables_of_any_shape_have_what_was_put_into_them() -> Outcome {
    let fixture = Fixture::new();
    for seed in 0..48 {
        let mut random = Random::new(seed);
        let count = [0, 1, 40, 600, 3000][random.below(5)];
        let entries = check::entries(&mut random, count);
        let codec = [Codec::None, Codec::Lz4, Codec::Zstd][random.below(3)];
        let options = options([16, 200, 1000, 4096, 100_000][random.below(5)], codec);
        let info = build(&fixture.folder, seed, &options, &entries)?;
        let table = open(&fixture.folder, seed, [0, 20_000, 1 << 20][random.below(3)])?;
        assert_eq!(*table.info(), info, "seed {seed}");
        assert_info(&info, &entries);
        assert_gets(&table, &entries)?;
        let mut keys: Vec<_> = entries.iter().map(|entry| &entry.0[..]).collect();
        keys.dedup();
        assert_eq!(hashes_of(&table)?, keys.into_iter().map(hash).collect::<Vec<_>>());
        check::walk(&mut table.cursor(seed % 2 == 0), &entries, &mut random, 2000)?;
    }
    Ok(())
}

#[test]
fn indexes_grow_in_height_and_lead_both_ways() -> Outcome {
    let fixture = Fixture::new();
    // Each block has one entry, and its key takes more than an upper index block should.
    let key = |i: usize| [&b"k".repeat(30_000)[..], &i.to_string().into_bytes()[..]].concat();
    let mut entries: Vec<Owned> = (0..150).map(|i| (key(i), 1, None)).collect();
    entries.sort();
    build(&fixture.folder, 1, &options(64, Codec::Lz4), &entries)?;
    let table = open(&fixture.folder, 1, 1 << 20)?;
    assert!((3..6).contains(&table.height()), "{}", table.height());
    assert_gets(&table, &entries)?;
    check::walk(&mut table.cursor(true), &entries, &mut Random::new(1), 2000)?;
    Ok(())
}

#[test]
fn keys_beyond_one_frame_of_hashes_are_all_there() -> Outcome {
    let fixture = Fixture::new();
    for count in [8191, 8192, 8193, 20_000_u32] {
        let entries = numbered(count, 3);
        build(&fixture.folder, u64::from(count), &options(4096, Codec::None), &entries)?;
        let table = open(&fixture.folder, u64::from(count), 0)?;
        let expected: Vec<_> = entries.iter().map(|entry| hash(&entry.0)).collect();
        assert_eq!(hashes_of(&table)?, expected);
    }
    Ok(())
}

#[test]
fn entries_out_of_order_are_refused() -> Outcome {
    let fixture = Fixture::new();
    for (number, wrong) in [(b"a", 9), (b"b", 5), (b"b", 6)].into_iter().enumerate() {
        let mut builder =
            TableBuilder::new(&fixture.folder, number as u64, &options(4096, Codec::None))?;
        builder.add(entry_of(&(b"b".to_vec(), 5, None)))?;
        let added = builder.add(entry_of(&(wrong.0.to_vec(), wrong.1, None)));
        assert!(matches!(added, Err(Error::Damaged { .. })), "{wrong:?}");
    }
    Ok(())
}

#[test]
fn a_block_in_the_cache_is_not_read_again_and_the_cache_keeps_its_size() -> Outcome {
    let fixture = Fixture::new();
    let entries = numbered(4000, 100);
    build(&fixture.folder, 1, &options(4096, Codec::None), &entries)?;
    let cache = Arc::new(BlockCache::new(100_000));
    let table = Table::open(&fixture.folder, 1, SALT, &cache)?;
    let key = &entries[1234].0;
    let find =
        |table: &Table| table.get(Lookup::of(key, hash(key), 9)).map(|found| found.is_some());
    assert!(find(&table)?);
    let after_one = cache.bytes();
    assert!((4096..20_000).contains(&after_one));
    // The file is gone, so only the cache can have it.
    std::fs::File::options().write(true).open(fixture.path(1))?.set_len(0)?;
    assert!(find(&table)? && cache.bytes() == after_one);
    let other = &entries[0].0;
    assert!(table.get(Lookup::of(other, hash(other), 9)).is_err());
    build(&fixture.folder, 2, &options(4096, Codec::None), &entries)?;
    assert_gets(&Table::open(&fixture.folder, 2, SALT, &cache)?, &entries)?;
    assert!(cache.bytes() <= 100_000);
    Ok(())
}

#[test]
fn a_table_has_the_bytes_in_the_format_description() -> Outcome {
    let format = include_str!("../../../../../../docs/FORMAT-STORES.md");
    let fixture = Fixture::new();
    let entries = [
        (b"Ada Byron".to_vec(), 9, Some(b"1815".to_vec())),
        (b"Ada Byron".to_vec(), 7, None),
        (b"Ada King".to_vec(), 8, Some(Vec::new())),
    ];
    let options = TableOptions { salt: 1, seed: 2, block_bytes: 4096, codec: Codec::None };
    build(&fixture.folder, 3, &options, &entries)?;
    let bytes = std::fs::read(fixture.path(3))?;
    let (mut lines, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let is_frame = at > 0 && at + 32 < bytes.len();
        let stored = bytes.get(at + 12).map_or(0, |stored| usize::from(*stored));
        let end = if at == 0 {
            40
        } else if is_frame {
            at + 20 + stored
        } else {
            bytes.len()
        };
        for line in bytes[at..end].chunks(32) {
            lines.push(line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
        }
        at = end;
    }
    assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
    Ok(())
}

/// A table of nothing else, and one with entries: each has them after it is opened, and in a
/// salvage, and a change of any bit of them is found.
#[test]
fn a_table_has_its_range_deletions_or_is_refused() -> Outcome {
    let fixture = Fixture::new();
    for (number, count) in [(1, 0), (2, 30)] {
        let deletions = range_deletions(5..25)?;
        let mut builder = TableBuilder::new(&fixture.folder, number, &options(300, Codec::Lz4))?;
        let entries = numbered(count, 20);
        entries.iter().try_for_each(|entry| builder.add(entry_of(entry)))?;
        let info = builder.finish(deletions.clone())?;
        assert_eq!((info.first_sequence, info.last_sequence), (5, 24));
        assert_eq!(fixture.damages(number)?, []);
        let table = open(&fixture.folder, number, 0)?;
        assert_eq!((table.info(), &table.info().range_deletions), (&info, &deletions));
        assert_gets(&table, &entries)?;
        let file = TableFile::open(&fixture.folder, number, SALT)?.expect("a file");
        assert_eq!(file.range_deletions()?, Some(deletions));
        let sound = std::fs::read(fixture.path(number))?;
        let at = usize::try_from(table.properties_at.offset)?;
        for (at, bit) in (at..sound.len()).zip((0..8).cycle()) {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            fixture.write(number, &bytes);
            assert!(!fixture.damages(number)?.is_empty(), "byte {at}");
            let file = TableFile::open(&fixture.folder, number, SALT)?.expect("a file");
            assert_eq!(file.range_deletions()?, None, "byte {at}");
        }
    }
    Ok(())
}
