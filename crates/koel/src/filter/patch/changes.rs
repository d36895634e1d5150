//! What changed between two ascending lists of keys with counts, as three lists of numbers.
//!
//! ```text
//!     gone      ranks among the old keys
//!     added     keys
//!     recounted ranks among the new keys, with counts: of an old key that has another one now,
//!               and of an added key that has more than 1
//! ```
//!
//! The rank of a key takes fewer bits than the key: in a filter of a million keys 9 fewer.
//!
//! Names of entries, addresses of the stash and addresses of corrections are such keys. A
//! correction has the count 1.

use alloc::vec::Vec;

use super::bits::{BitWriter, NoMemory};
use super::lists::{self, Ascending};

/// Which of the three lists have counts.
pub(super) const ARE_COUNTED: [bool; 3] = [false, false, true];

/// The differences of two lists of keys, found as both are read.
#[derive(Debug, Default)]
pub(super) struct Diff {
    gone: Vec<u64>,
    added: Vec<u64>,
    recounted: Vec<(u64, u64)>,
    /// Keys read of the old list, and of the new one.
    ranks: [u64; 2],
}

impl Diff {
    /// Reads the next keys of both lists.
    pub(super) fn read(
        &mut self,
        old: impl Iterator<Item = (u64, u64)>,
        new: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), NoMemory> {
        let mut old = old.peekable();
        for (key, count) in new {
            while old.next_if(|&(next, _)| next < key).is_some() {
                self.note_gone()?;
            }
            let before = old.next_if(|&(next, _)| next == key).map(|(_, count)| count);
            if before.is_none() {
                push(&mut self.added, key)?;
            }
            if before.unwrap_or(1) != count {
                push(&mut self.recounted, (self.ranks[1], count))?;
            }
            self.ranks[0] += u64::from(before.is_some());
            self.ranks[1] += 1;
        }
        old.try_for_each(|_| self.note_gone())
    }

    fn note_gone(&mut self) -> Result<(), NoMemory> {
        push(&mut self.gone, self.ranks[0])?;
        self.ranks[0] += 1;
        Ok(())
    }

    /// Writes the three lists, and their entries of the directory.
    pub(super) fn write(&self, directory: &mut BitWriter) -> Result<[Vec<u8>; 3], NoMemory> {
        let alone = |number: &u64| (*number, 1);
        Ok([
            lists::write(directory, self.gone.iter().map(alone), false)?,
            lists::write(directory, self.added.iter().map(alone), false)?,
            lists::write(directory, self.recounted.iter().copied(), true)?,
        ])
    }
}

fn push<T>(all: &mut Vec<T>, item: T) -> Result<(), NoMemory> {
    all.try_reserve(1).map_err(|_| NoMemory)?;
    all.push(item);
    Ok(())
}

/// The same lists, read from a patch.
#[derive(Clone, Debug)]
pub(super) struct Changes<'a> {
    gone: Ascending<'a>,
    added: Ascending<'a>,
    recounted: Ascending<'a>,
    /// Keys read of the old list, and of the new one.
    ranks: [u64; 2],
    is_sound: bool,
}

impl<'a> Changes<'a> {
    pub(super) fn new([gone, added, recounted]: [Ascending<'a>; 3]) -> Self {
        Self { gone, added, recounted, ranks: [0; 2], is_sound: true }
    }

    /// Passes the next old keys and the added ones up to `last` to `visit`, ascending, each with
    /// its count before and after.
    pub(super) fn apply<E>(
        &mut self,
        old: impl Iterator<Item = (u64, u64)>,
        last: u64,
        mut visit: impl FnMut(u64, [u64; 2]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (key, before) in old {
            if let Some(last) = key.checked_sub(1) {
                self.add_up_to(last, &mut visit)?;
            }
            self.is_sound &= self.added.peek() != Some(key);
            let is_gone = self.gone.take(self.ranks[0]).is_some();
            self.ranks[0] += 1;
            let after = if is_gone { 0 } else { self.count(before) };
            visit(key, [before, after])?;
        }
        self.add_up_to(last, &mut visit)
    }

    fn add_up_to<E>(
        &mut self,
        last: u64,
        visit: &mut impl FnMut(u64, [u64; 2]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(key) = self.added.peek().filter(|&key| key <= last && self.is_sound) {
            self.added.take(key);
            let count = self.count(1);
            visit(key, [0, count])?;
        }
        Ok(())
    }

    /// The count of the next new key, which is `usual` where the patch says nothing else.
    fn count(&mut self, usual: u64) -> u64 {
        let count = self.recounted.take(self.ranks[1]);
        self.ranks[1] += 1;
        self.is_sound &= count != Some(usual);
        count.unwrap_or(usual)
    }

    /// Whether all of the lists were used, and are those that a [`Diff`] writes.
    pub(super) fn are_done(&self) -> bool {
        self.is_sound
            && [&self.gone, &self.added, &self.recounted].into_iter().all(Ascending::is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::convert::Infallible;
    use testkit::keys::hashes;

    extern crate std;

    type Keys = BTreeMap<u64, u64>;

    fn patch(old: &Keys, new: &Keys, cut: u64) -> Vec<u8> {
        let mut diff = Diff::default();
        for range in [0..=cut, cut + 1..=u64::MAX] {
            let part = |keys: &Keys| keys.range(range.clone()).map(|it| (*it.0, *it.1)).collect();
            let [old, new]: [Vec<_>; 2] = [part(old), part(new)];
            diff.read(old.into_iter(), new.into_iter()).unwrap();
        }
        let mut directory = BitWriter::default();
        let lists = diff.write(&mut directory).unwrap();
        [directory.finish().unwrap(), lists.concat()].concat()
    }

    fn patched(old: &Keys, bytes: &[u8], cut: u64) -> (Keys, bool) {
        let (lists, _) = Ascending::of_directory(bytes, ARE_COUNTED).unwrap();
        let (mut changes, mut new, mut last) = (Changes::new(lists), Keys::new(), None);
        for range in [0..=cut, cut + 1..=u64::MAX] {
            let part = old.range(range.clone()).map(|it| (*it.0, *it.1));
            let Ok(()) = changes.apply(part, *range.end(), |key, [before, after]| {
                assert!(last < Some(key) && before == old.get(&key).copied().unwrap_or(0));
                last = Some(key);
                if after > 0 {
                    new.insert(key, after);
                }
                Ok::<(), Infallible>(())
            });
        }
        (new, changes.are_done())
    }

    fn keys(seed: u64, len: u64) -> Keys {
        let some = hashes(seed, len).map(|hash| (hash % 64, 1 + (hash >> 32) % 3));
        let some = some.map(|(key, count)| (if key < 3 { u64::MAX - key } else { key }, count));
        some.collect()
    }

    #[test]
    fn the_changes_make_the_new_keys_of_the_old_ones() {
        for seed in 0..3000 {
            let (old, new) = (keys(seed, seed % 50), keys(seed / 2, seed % 41));
            let cut = seed % 70;
            let bytes = patch(&old, &new, cut);
            assert_eq!(patched(&old, &bytes, 69 - cut), (new, true), "{seed}");
            assert_eq!(patch(&old, &old, cut), [7], "nothing changed");
        }
    }

    /// Lists that say what is the case anyway, or that go beyond the keys, are noticed.
    #[test]
    fn changes_of_other_keys_are_noticed() {
        let mut noticed = 0;
        for seed in 0..500 {
            let (old, new, other) = (keys(seed, 30), keys(seed + 1, 30), keys(seed + 2, 10));
            let (found, are_done) = patched(&other, &patch(&old, &new, 9), 9);
            assert!(!are_done || found != new);
            noticed += u32::from(!are_done);
        }
        assert!(noticed > 400, "{noticed}");
    }
}
