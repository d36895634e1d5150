//! An entry, and the order of entries: keys ascending, and the versions of a key from the last one
//! to the first.
//!
//! A [`Cursor`] is a place in entries that are in order, and moves both ways.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Bound;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Error;
use crate::kernel::memory;

/// Bytes of the longest key.
pub(super) const MAX_KEY: u64 = 64 << 10;
/// Bytes of the longest value.
pub(super) const MAX_VALUE: u64 = 256 << 20;
/// The sequence number that comes first among the entries of a key.
pub(super) const LAST_SEQUENCE: u64 = u64::MAX;

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    /// Greater than those of all earlier versions of the key.
    pub(super) sequence: u64,
    /// `None` if the key was deleted.
    pub(super) value: Option<&'a [u8]>,
}

impl Entry<'_> {
    /// Compares the place of this entry with that of a key and a sequence number.
    #[inline]
    pub(super) fn cmp_place(&self, key: &[u8], sequence: u64) -> Ordering {
        cmp_places((self.key, self.sequence), (key, sequence))
    }
}

/// Compares two places in the order of entries.
#[inline]
pub(super) fn cmp_places(one: (&[u8], u64), other: (&[u8], u64)) -> Ordering {
    one.0.cmp(other.0).then(other.1.cmp(&one.1))
}

/// Returns 8 bytes of `key` from `at` on as a number that compares as they do.
#[inline]
pub(super) fn word_at(key: &[u8], at: usize) -> u64 {
    let rest = key.get(at..).unwrap_or_default();
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Checks that a store takes a key and a value of these lengths.
pub(super) fn check_lengths(key: u64, value: u64) -> Result<(), Error> {
    if key > MAX_KEY {
        Err(Error::TooLong { what: "key", len: key, max: MAX_KEY })
    } else if value > MAX_VALUE {
        Err(Error::TooLong { what: "value", len: value, max: MAX_VALUE })
    } else {
        Ok(())
    }
}

/// Returns the least key that is greater than all that start with `prefix`, if there is one.
pub(super) fn behind(prefix: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut behind = memory::copy_of(prefix)?;
    while behind.last() == Some(&u8::MAX) {
        behind.pop();
    }
    Ok(behind.last_mut().map(|last| *last += 1).map(|()| behind))
}

/// Returns the stripe of a version or a deletion: the index of the first of the `boundaries` that
/// sees it. Boundaries are the sequence numbers at which reads happen, ascending; reads of what is
/// newest come after them. A read sees only the newest one of a stripe.
#[inline]
pub(super) fn stripe_of(sequence: u64, boundaries: &[u64]) -> usize {
    boundaries.partition_point(|&at| at < sequence)
}

/// Returns the hash of a key in a store with this seed.
#[inline]
pub(super) fn hash_of(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// What a read looks for: the newest version of a key up to a sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup<'a> {
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    pub(super) sequence: u64,
    /// When the key was last deleted with a range: versions before that do not count.
    pub(super) deleted: u64,
}

#[cfg(test)]
impl<'a> Lookup<'a> {
    pub(super) fn of(key: &'a [u8], hash: u64, sequence: u64) -> Self {
        Self { key, hash, sequence, deleted: 0 }
    }
}

/// A part of the keys: from and to.
pub(super) type Span = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of a damaged block: those after the first key and up to the second. The first may have
/// versions in it, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// `None` if there are no keys before.
    pub(super) after: Option<Vec<u8>>,
    pub(super) until: Vec<u8>,
}

/// A place in entries that are in order. A new cursor is before the first entry.
///
/// After an error the cursor is at no entry, and has to be placed again with one of the calls that
/// do not depend on its place.
pub(super) trait Cursor: Debug + Send {
    /// Returns the entry at the cursor. `None` before the first one and after the last one.
    fn entry(&self) -> Option<Entry<'_>>;

    /// Moves to the first entry at or after a place: the newest version of `key` whose sequence
    /// number is at most `sequence`, or the first entry of a greater key.
    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error>;

    /// Moves to the last entry whose key is less than `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error>;

    /// Moves to the first entry.
    fn first(&mut self) -> Result<(), Error>;

    /// Moves to the last entry.
    fn last(&mut self) -> Result<(), Error>;

    /// Moves to the next entry: to the first one if the cursor is before it.
    fn next(&mut self) -> Result<(), Error>;

    /// Moves to the previous entry: to the last one if the cursor is after it.
    fn previous(&mut self) -> Result<(), Error>;

    /// Returns which keys a move did not find because of damage, if the last move failed and that
    /// is known.
    fn lost(&self) -> Option<&Lost> {
        None
    }
}

#[cfg(test)]
pub(super) mod check {
    //! A cursor beside the entries that it should have.

    use std::sync::Arc;

    use testkit::storage::Random;

    use super::*;
    use crate::lsm::memtable::Memtable;

    /// An entry of its own.
    pub(in crate::lsm) type Owned = (Vec<u8>, u64, Option<Vec<u8>>);

    pub(in crate::lsm) fn entry_of((key, sequence, value): &Owned) -> Entry<'_> {
        Entry { key, sequence: *sequence, value: value.as_deref() }
    }

    /// Returns entries in order: short and long keys that share much or nothing, several versions,
    /// deleted keys, empty and long values. Sequence numbers are distinct.
    pub(in crate::lsm) fn entries(random: &mut Random, count: usize) -> Vec<Owned> {
        let mut entries = Vec::new();
        while entries.len() < count {
            let mut key = b"abc".repeat(random.below(8));
            let tail = random.below(4);
            key.extend(random.bytes(tail).iter().map(|byte| byte % 4));
            if random.chance(3) {
                key.resize(key.len() + random.below(300), b'x');
            }
            let versions = if random.chance(5) { random.below(60) } else { random.below(3) };
            for _ in 0..=versions {
                let length = if random.chance(2) { 5000 } else { random.below(40) };
                let value = (!random.chance(20)).then(|| random.bytes(length));
                entries.push((key.clone(), entries.len() as u64 * 37 % 65_537, value));
            }
        }
        entries.sort_by(|one, other| cmp_places((&one.0, one.1), (&other.0, other.1)));
        entries
    }

    /// Returns a memtable of these entries.
    pub(in crate::lsm) fn memtable(entries: &[Owned]) -> Result<Arc<Memtable>, Error> {
        let memtable = Memtable::new(1, 1 << 16, 0);
        let mut entries: Vec<&Owned> = entries.iter().collect();
        entries.sort_by_key(|entry| entry.1);
        for (key, sequence, value) in entries {
            memtable.add(key, value.as_deref(), *sequence)?;
        }
        Ok(Arc::new(memtable))
    }

    /// Moves a cursor at random and compares each entry.
    pub(in crate::lsm) fn walk(
        cursor: &mut dyn Cursor,
        entries: &[Owned],
        random: &mut Random,
        steps: usize,
    ) -> Result<(), Error> {
        assert_eq!(cursor.entry(), None, "a new cursor");
        // The index of the entry, and one more: 0 is before all, `len + 1` after all.
        let (mut at, end) = (0, entries.len() + 1);
        for step in 0..steps {
            let aim = match entries {
                [] => (b"a".to_vec(), 0),
                _ => {
                    let (mut key, sequence, _) = entries[random.below(entries.len())].clone();
                    if random.chance(30) {
                        key.push(random.bytes(1)[0] % 4);
                    }
                    (key, if random.chance(50) { sequence } else { random.next_u64() % 70_000 })
                }
            };
            let what = random.below(14);
            match what {
                0 => (at, ()) = (1, cursor.first()?),
                1 => (at, ()) = (end - 1, cursor.last()?),
                2 => {
                    cursor.seek(&aim.0, aim.1)?;
                    let is_before =
                        |entry: &Owned| cmp_places((&entry.0, entry.1), (&aim.0, aim.1)).is_lt();
                    at = entries.partition_point(is_before) + 1;
                }
                3 => {
                    cursor.seek_before(&aim.0)?;
                    at = entries.partition_point(|entry| entry.0 < aim.0);
                }
                4..=8 => (at, ()) = ((at + 1).min(end), cursor.next()?),
                _ => (at, ()) = (at.saturating_sub(1), cursor.previous()?),
            }
            let expected = at.checked_sub(1).and_then(|at| entries.get(at)).map(entry_of);
            assert_eq!(cursor.entry(), expected, "step {step}, operation {what}");
        }
        Ok(())
    }
}
