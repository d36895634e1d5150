//! The keys of a range with their values, as of one moment, from both ends.
//!
//! Each end has a cursor, made at first use. What an end returns becomes the bound of the other
//! one, so they never return a key twice, and each is done when it reaches its bound. Going
//! forward, the first version of a key that the moment sees is its value, and older ones are
//! skipped. Going backward they come first, so the last one that the moment sees counts.
//!
//! A key that is written often has thousands of versions in a memtable. So an end steps over a few
//! of them, and then searches for the place that it needs, which costs as much as a few steps.

use std::fmt::Debug;
use std::iter::FusedIterator;
use std::ops::Bound;

use super::merge::MergeCursor;
use crate::Error;
use crate::kernel::memory;
use crate::lsm::cursor::Cursor;
use crate::lsm::entry::LAST_SEQUENCE;

/// What a range reads: the memtables and tables of one moment, which exist as long as this does.
pub(in crate::lsm) trait Sources: Debug + Send {
    /// Returns a cursor for each memtable and table.
    fn cursors(&self) -> Vec<Box<dyn Cursor>>;
}

/// The versions of a key that an end steps over before it searches.
const STEPS: usize = if cfg!(test) { 3 } else { 8 };

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// An iterator over the keys of a range and their values, in the order of the keys or, with
/// [`rev`](Iterator::rev), in the opposite order. Both ends can be taken in turn.
///
/// It shows one moment, whatever is written meanwhile, and reads as it goes: in memory it has a
/// block of each table. After an error it ends.
#[derive(Debug)]
pub struct Range<'a> {
    sources: Box<dyn Sources + 'a>,
    sequence: u64,
    /// Everything before was returned, or is not in the range.
    from: Bound<Vec<u8>>,
    /// Everything behind was returned, or is not in the range.
    to: Bound<Vec<u8>>,
    front: Option<MergeCursor>,
    back: Option<MergeCursor>,
    has_ended: bool,
    /// Memory for a key.
    key: Vec<u8>,
}

impl<'a> Range<'a> {
    /// Returns the entries between two bounds that a read at `sequence` sees.
    pub(in crate::lsm) fn new(
        sources: Box<dyn Sources + 'a>,
        sequence: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Self, Error> {
        let (from, to) = (copy_of(from)?, copy_of(to)?);
        let (front, back, has_ended, key) = (None, None, false, Vec::new());
        Ok(Self { sources, sequence, from, to, front, back, has_ended, key })
    }

    /// Returns the entries whose key starts with `prefix`.
    pub(in crate::lsm) fn prefix(
        sources: Box<dyn Sources + 'a>,
        sequence: u64,
        prefix: &[u8],
    ) -> Result<Self, Error> {
        let mut behind = memory::copy_of(prefix)?;
        // The least key that is greater than all of them, if there is one.
        while behind.last() == Some(&u8::MAX) {
            behind.pop();
        }
        let to = match behind.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(&behind[..])
            }
            None => Bound::Unbounded,
        };
        Self::new(sources, sequence, Bound::Included(prefix), to)
    }

    fn next_pair(&mut self) -> Result<Option<Pair>, Error> {
        let cursor = match &mut self.front {
            Some(front) => front,
            None => {
                let mut cursor = MergeCursor::new(self.sources.cursors());
                match &self.from {
                    Bound::Included(key) => cursor.seek(key, LAST_SEQUENCE)?,
                    Bound::Excluded(key) => cursor.seek(key, 0)?,
                    Bound::Unbounded => cursor.first()?,
                }
                self.front.insert(cursor)
            }
        };
        while let Some(entry) = cursor.entry() {
            if !is_within(&self.to, entry.key, |key, to| key < to) {
                break;
            }
            let is_old = !is_within(&self.from, entry.key, |key, from| key > from);
            if is_old || entry.sequence > self.sequence {
                copy_to(&mut self.key, entry.key)?;
                cursor.next()?;
                move_on(cursor, &self.key, if is_old { 0 } else { self.sequence })?;
                continue;
            }
            let found = match entry.value {
                Some(value) => Some((memory::copy_of(entry.key)?, memory::copy_of(value)?)),
                None => None,
            };
            exclude(&mut self.from, entry.key)?;
            cursor.next()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn previous_pair(&mut self) -> Result<Option<Pair>, Error> {
        let cursor = match &mut self.back {
            Some(back) => back,
            None => {
                let mut cursor = MergeCursor::new(self.sources.cursors());
                match &self.to {
                    Bound::Excluded(key) => cursor.seek_before(key)?,
                    Bound::Included(key) => {
                        cursor.seek(key, 0)?;
                        if cursor.entry().is_none_or(|entry| entry.key != key) {
                            cursor.previous()?;
                        }
                    }
                    Bound::Unbounded => cursor.last()?,
                }
                self.back.insert(cursor)
            }
        };
        while let Some(entry) = cursor.entry() {
            if !is_within(&self.from, entry.key, |key, from| key > from) {
                break;
            }
            if !is_within(&self.to, entry.key, |key, to| key < to) {
                cursor.previous()?;
                continue;
            }
            exclude(&mut self.to, entry.key)?;
            let Bound::Excluded(key) = &self.to else { break };
            if let Some(value) = newest_seen(cursor, key, self.sequence)? {
                return Ok(Some((memory::copy_of(key)?, value)));
            }
        }
        Ok(None)
    }

    /// Ends the iteration at its end or at an error.
    fn item(&mut self, found: Result<Option<Pair>, Error>) -> Option<Result<Pair, Error>> {
        self.has_ended |= !matches!(found, Ok(Some(_)));
        found.transpose()
    }
}

/// Moves forward to the first entry at or after a place, as a search for it does.
fn move_on(cursor: &mut MergeCursor, key: &[u8], sequence: u64) -> Result<(), Error> {
    for _ in 0..STEPS {
        if cursor.entry().is_none_or(|entry| entry.cmp_place(key, sequence).is_ge()) {
            return Ok(());
        }
        cursor.next()?;
    }
    cursor.seek(key, sequence)
}

/// Returns the value of `key` that a read at `sequence` sees, if there is one, and moves to the
/// last entry before the key. The cursor is at the oldest version.
fn newest_seen(
    cursor: &mut MergeCursor,
    key: &[u8],
    sequence: u64,
) -> Result<Option<Vec<u8>>, Error> {
    let mut value = None;
    for _ in 0..STEPS {
        let Some(entry) = cursor.entry().filter(|entry| entry.key == key) else {
            return Ok(value);
        };
        if entry.sequence <= sequence {
            value = entry.value.map(memory::copy_of).transpose()?;
        }
        cursor.previous()?;
    }
    cursor.seek(key, sequence)?;
    let newest = cursor.entry().filter(|entry| entry.key == key);
    value = newest.and_then(|entry| entry.value).map(memory::copy_of).transpose()?;
    cursor.seek_before(key)?;
    Ok(value)
}

fn copy_of(bound: Bound<&[u8]>) -> Result<Bound<Vec<u8>>, Error> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(memory::copy_of(key)?),
        Bound::Excluded(key) => Bound::Excluded(memory::copy_of(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// Returns whether `key` is on the right side of a bound, as `is_beyond` says for a bound that is
/// excluded.
#[inline]
fn is_within(
    bound: &Bound<Vec<u8>>,
    key: &[u8],
    is_beyond: impl FnOnce(&[u8], &[u8]) -> bool,
) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(at) => key == at || is_beyond(key, at),
        Bound::Excluded(at) => is_beyond(key, at),
    }
}

/// Moves a bound to a key, which is outside then.
#[inline]
fn exclude(bound: &mut Bound<Vec<u8>>, key: &[u8]) -> Result<(), Error> {
    let mut at = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(at) | Bound::Excluded(at) => at,
        Bound::Unbounded => Vec::new(),
    };
    copy_to(&mut at, key)?;
    *bound = Bound::Excluded(at);
    Ok(())
}

/// Replaces what `to` holds by a key.
#[inline]
fn copy_to(to: &mut Vec<u8>, key: &[u8]) -> Result<(), Error> {
    to.clear();
    memory::reserve(to, key.len())?;
    to.extend_from_slice(key);
    Ok(())
}

impl Iterator for Range<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let found = self.next_pair();
        self.item(found)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let found = self.previous_pair();
        self.item(found)
    }
}

impl FusedIterator for Range<'_> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use testkit::storage::Random;

    use super::*;
    use crate::kernel::disk::DiskFolder;
    use crate::lsm::cursor::check::{self, Owned, entry_of};
    use crate::lsm::entry::Entry;
    use crate::lsm::memtable::{Memtable, MemtableCursor, NewEntry};
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
            builder.finish()?;
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
            let value = sequence.to_le_bytes();
            let entry = NewEntry::new(&key, Some((8, [&value[..]].into_iter())))?;
            memtable.insert(entry, sequence);
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
        let keys =
            [&b""[..], b"a", b"a\xff", b"a\xff\xff", b"a\xff\xffz", b"b", b"\xff", b"\xff\xff"];
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
}
