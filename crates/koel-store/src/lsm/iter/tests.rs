//! Several cursors move as one, and ranges over random tables and memtables give what a sorted map
//! gives, from both ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::storage::Random;

use super::*;
use crate::kernel::disk::DiskFolder;
use crate::lsm::entry::Entry;
use crate::lsm::entry::check::{self, Owned, entry_of};
use crate::lsm::memtable::{Memtable, MemtableCursor};
use crate::lsm::table::{BlockCache, Codec, Table, TableBuilder, TableOptions};

#[derive(Debug)]
struct Tables(Vec<Arc<Table>>);

impl Sources for Tables {
    fn cursors(&self) -> Vec<Box<dyn Cursor>> {
        let cursor = |table: &Arc<Table>| Box::new(table.cursor(true)) as Box<dyn Cursor>;
        self.0.iter().map(cursor).collect()
    }
}

/// Spreads entries over some tables.
fn tables(random: &mut Random, entries: &[Owned]) -> Vec<Arc<Table>> {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = DiskFolder::new(temporary.path()).expect("a folder");
    let options = TableOptions { salt: 1, seed: 2, block_bytes: 300, codec: Codec::Lz4 };
    let cache = Arc::new(BlockCache::new(1 << 20));
    let count = 1 + random.below(4);
    let places: Vec<usize> = entries.iter().map(|_| random.below(count)).collect();
    let table = |number: usize| {
        let mut builder = TableBuilder::new(&folder, number as u64, &options)?;
        let mine = entries.iter().zip(&places).filter(|(_, place)| **place == number);
        mine.into_iter().try_for_each(|(entry, _)| builder.add(entry_of(entry)))?;
        builder.finish(Arc::default())?;
        Table::open(&folder, number as u64, 1, &cache).map(Arc::new)
    };
    (0..count).map(table).collect::<Result<_, _>>().expect("sound tables")
}

/// The keys and values that a read at `sequence` sees.
fn seen(entries: &[Owned], sequence: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let keys = entries.chunk_by(|one, other| one.0 == other.0);
    let newest = keys.filter_map(|all| all.iter().find(|entry| entry.1 <= sequence));
    newest.filter_map(|(key, _, value)| Some((key.clone(), value.clone()?))).collect()
}

fn bound<'a>(random: &mut Random, entries: &'a [Owned]) -> Bound<&'a [u8]> {
    let key = entries.get(random.below(entries.len().max(1))).map_or(&b"b"[..], |one| &one.0);
    match random.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        2 => Bound::Excluded(key),
        _ => Bound::Included(&key[..key.len() / 2]),
    }
}

#[test]
fn a_range_shows_its_keys_once_from_any_mix_of_ends() -> Result<(), Error> {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let count = [0, 3, 100, 400][random.below(4)];
        let entries = check::entries(&mut random, count);
        let tables = tables(&mut random, &entries);
        for _ in 0..40 {
            let sequence = random.next_u64() % 70_000;
            let (from, to) = (bound(&mut random, &entries), bound(&mut random, &entries));
            let mut expected: Vec<Pair> = seen(&entries, sequence)
                .into_iter()
                .filter(|(key, _)| {
                    let mut bounds = [(from, true), (to, false)].into_iter();
                    bounds.all(|(bound, is_from)| match bound {
                        Bound::Unbounded => true,
                        Bound::Included(at) => key == at || (&key[..] > at) == is_from,
                        Bound::Excluded(at) => key != at && (&key[..] > at) == is_from,
                    })
                })
                .collect();
            let sources = Box::new(Tables(tables.clone()));
            let mut range = Range::new(sources, sequence, from, to)?;
            let backward = [0, 50, 100][random.below(3)];
            loop {
                let is_back = random.chance(backward);
                let found = if is_back { range.next_back() } else { range.next() };
                let next = if is_back {
                    expected.pop()
                } else if expected.is_empty() {
                    None
                } else {
                    Some(expected.remove(0))
                };
                assert_eq!(found.transpose()?, next, "seed {seed}, {from:?}..{to:?}");
                if next.is_none() {
                    assert!(range.next().is_none() && range.next_back().is_none());
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The cursor of a memtable, which counts its moves.
#[derive(Debug)]
struct Counted(MemtableCursor, Arc<AtomicUsize>);

impl Counted {
    fn moving(&mut self) -> &mut MemtableCursor {
        self.1.fetch_add(1, Ordering::Relaxed);
        &mut self.0
    }
}

impl Cursor for Counted {
    fn entry(&self) -> Option<Entry<'_>> {
        self.0.entry()
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.moving().seek(key, sequence)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.moving().seek_before(key)
    }

    fn first(&mut self) -> Result<(), Error> {
        self.moving().first()
    }

    fn last(&mut self) -> Result<(), Error> {
        self.moving().last()
    }

    fn next(&mut self) -> Result<(), Error> {
        self.moving().next()
    }

    fn previous(&mut self) -> Result<(), Error> {
        self.moving().previous()
    }
}

#[derive(Debug)]
struct Counting(Arc<Memtable>, Arc<AtomicUsize>);

impl Sources for Counting {
    fn cursors(&self) -> Vec<Box<dyn Cursor>> {
        let cursor = MemtableCursor::new(self.0.clone());
        vec![Box::new(Counted(cursor, self.1.clone()))]
    }
}

#[test]
fn a_key_of_many_versions_takes_few_moves_both_ways() -> Result<(), Error> {
    const VERSIONS: u64 = 1000;
    let memtable = Arc::new(Memtable::new(1, 1 << 20, 0));
    for sequence in 1..=3 * VERSIONS {
        let key = [b'a' + (sequence % 3) as u8];
        memtable.add(&key, Some(&sequence.to_le_bytes()), sequence)?;
    }
    let key_of = |sequence: u64| vec![b'a' + (sequence % 3) as u8];
    for sequence in [0, 1, 5, VERSIONS, 2 * VERSIONS, 3 * VERSIONS - 4, 3 * VERSIONS] {
        let newest = (1..=sequence).rev().take(3);
        let mut expected: Vec<Pair> =
            newest.map(|one| (key_of(one), one.to_le_bytes().to_vec())).collect();
        expected.sort();
        for is_back in [false, true] {
            let moves = Arc::new(AtomicUsize::new(0));
            let sources = Box::new(Counting(memtable.clone(), moves.clone()));
            let range = Range::new(sources, sequence, Bound::Unbounded, Bound::Unbounded)?;
            let found: Result<Vec<Pair>, Error> =
                if is_back { range.rev().collect() } else { range.collect() };
            let mut found = found?;
            if is_back {
                found.reverse();
            }
            assert_eq!(found, expected, "sequence {sequence}, backward: {is_back}");
            // To the first key; of each key, to the version, beyond it, and to the next key.
            let most = 1 + 3 * ((STEPS + 2) + 1 + (STEPS + 2));
            let moves = moves.load(Ordering::Relaxed);
            assert!(moves <= most, "{moves} moves, sequence {sequence}, backward: {is_back}");
        }
    }
    Ok(())
}

#[test]
fn a_prefix_has_every_key_that_starts_with_it() -> Result<(), Error> {
    let keys = [&b""[..], b"a", b"a\xff", b"a\xff\xff", b"a\xff\xffz", b"b", b"\xff", b"\xff\xff"];
    let entries: Vec<Owned> = keys.iter().map(|key| (key.to_vec(), 1, Some(vec![1]))).collect();
    let tables = tables(&mut Random::new(1), &entries);
    for prefix in keys.iter().chain([&b"zz"[..]].iter()) {
        let range = Range::prefix(Box::new(Tables(tables.clone())), 1, prefix)?;
        let found: Vec<Pair> = range.collect::<Result<_, _>>()?;
        let starts = keys.iter().filter(|key| key.starts_with(prefix));
        assert!(found.iter().map(|pair| &pair.0[..]).eq(starts.copied()), "{prefix:?}");
    }
    Ok(())
}

#[test]
fn several_cursors_move_as_one_over_all_their_entries() -> Result<(), Error> {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let count = [0, 1, 5, 300][random.below(4)];
        let entries = check::entries(&mut random, count);
        let mut sources = vec![Vec::new(); random.below(7)];
        if sources.is_empty() {
            check::walk(&mut MergeCursor::new(Vec::new()), &[], &mut random, 200)?;
            continue;
        }
        for entry in &entries {
            let source = random.below(sources.len());
            sources[source].push(entry.clone());
        }
        let cursor = |entries: Vec<Owned>| -> Result<Box<dyn Cursor>, Error> {
            Ok(Box::new(MemtableCursor::new(check::memtable(&entries)?)))
        };
        let cursors = sources.into_iter().map(cursor).collect::<Result<_, _>>()?;
        let mut merged = MergeCursor::new(cursors);
        check::walk(&mut merged, &entries, &mut random, 2000)?;
    }
    Ok(())
}
