//! Entries of memtables and tables as one sequence, and ranges of keys.
//!
//! **The entries of several cursors in one order.** A heap has the cursors that are at an entry,
//! that of the next entry first. A step moves one cursor and compares its key with those of two or
//! so others. To turn around, every cursor is placed anew, at the other side of the current entry.
//!
//! **The keys of a range** with their values, as of one moment, from both ends. Each end has a
//! cursor, made at first use. What an end returns becomes the bound of the other one, so they never
//! return a key twice, and each is done when it reaches its bound. Going forward, the first version
//! of a key that the moment sees is its value, and older ones are skipped. Going backward they come
//! first, so the last one that the moment sees counts.
//!
//! A key that is written often has thousands of versions in a memtable. So an end steps over a few
//! of them, and then searches for the place that it needs, which costs as much as a few steps.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::iter::FusedIterator;
use std::ops::Bound;

use super::entry::{Cursor, Entry, LAST_SEQUENCE, Lost, Span, behind, cmp_places};
use crate::Error;
use crate::kernel::memory;

/// A place in the entries of several cursors. No two of them have an entry with the same key and
/// sequence number.
#[derive(Debug)]
pub(super) struct MergeCursor {
    sources: Vec<Box<dyn Cursor>>,
    /// The sources that are at an entry. No source of the heap comes before its parent, where the
    /// parent of `heap[i]` is `heap[(i - 1) / 2]`; if the cursor goes backward, none comes after
    /// it.
    heap: Vec<usize>,
    /// Which way the sources are placed: each at its first entry at or after the cursor, or at its
    /// last one at or before it.
    backward: bool,
    /// Where the cursor is if the heap is empty: after the last entry, or before the first.
    is_after: bool,
    /// Memory for a key.
    key: Vec<u8>,
}

impl MergeCursor {
    pub(super) fn new(sources: Vec<Box<dyn Cursor>>) -> Self {
        let (heap, key) = (Vec::new(), Vec::new());
        Self { sources, heap, backward: false, is_after: false, key }
    }

    /// Returns the number of the source that has the current entry.
    pub(super) fn source(&self) -> Option<usize> {
        self.heap.first().copied()
    }

    /// Places every source with `place`, and the cursor at the first of their entries, or at the
    /// last one if the cursor goes backward.
    fn place(
        &mut self,
        backward: bool,
        mut place: impl FnMut(&mut dyn Cursor) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.heap.clear();
        (self.backward, self.is_after) = (backward, !backward);
        memory::reserve(&mut self.heap, self.sources.len())?;
        for source in &mut self.sources {
            place(&mut **source)?;
        }
        for (index, source) in self.sources.iter().enumerate() {
            if source.entry().is_some() {
                self.heap.push(index);
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    /// Returns whether the entry of one source comes before that of another on the way.
    #[inline]
    fn comes_first(&self, one: usize, other: usize) -> bool {
        let place = |source: usize| {
            let entry = self.sources[source].entry();
            entry.map_or((&[][..], 0), |entry| (entry.key, entry.sequence))
        };
        let order = if self.backward { Ordering::Greater } else { Ordering::Less };
        cmp_places(place(one), place(other)) == order
    }

    /// Moves a source down the heap until none below comes first.
    #[inline]
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            let other = child + 1;
            if other < self.heap.len() && self.comes_first(self.heap[other], self.heap[child]) {
                child = other;
            }
            if !self.comes_first(self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Moves the source at the current entry one step, and the cursor with it.
    #[inline]
    fn step(&mut self) -> Result<(), Error> {
        let Some(&source) = self.heap.first() else { return Ok(()) };
        let cursor = &mut self.sources[source];
        let moved = if self.backward { cursor.previous() } else { cursor.next() };
        if moved.is_err() || cursor.entry().is_none() {
            self.heap.swap_remove(0);
        }
        if moved.is_err() {
            self.heap.clear();
        }
        self.sift_down(0);
        moved
    }

    /// Takes a step in the other direction: places every source behind the current entry, seen that
    /// way.
    fn turn_around(&mut self, entry: usize) -> Result<(), Error> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let mut sequence = 0;
        if let Some(entry) = self.sources[entry].entry() {
            memory::copy_into(&mut key, entry.key)?;
            sequence = entry.sequence;
        }
        let backward = !self.backward;
        let turned = self.place(backward, |source| {
            source.seek(&key, sequence)?;
            let is_there = |entry: Entry<'_>| entry.cmp_place(&key, sequence).is_eq();
            if backward {
                source.previous()
            } else if source.entry().is_some_and(is_there) {
                source.next()
            } else {
                Ok(())
            }
        });
        self.key = key;
        turned
    }
}

impl Cursor for MergeCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.sources[*self.heap.first()?].entry()
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        self.place(false, |source| source.seek(key, sequence))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.place(true, |source| source.seek_before(key))
    }

    fn first(&mut self) -> Result<(), Error> {
        self.place(false, |source| source.first())
    }

    fn last(&mut self) -> Result<(), Error> {
        self.place(true, |source| source.last())
    }

    #[inline]
    fn next(&mut self) -> Result<(), Error> {
        match self.heap.first() {
            Some(_) if !self.backward => self.step(),
            Some(&entry) => self.turn_around(entry),
            None if self.is_after => Ok(()),
            None => self.first(),
        }
    }

    #[inline]
    fn previous(&mut self) -> Result<(), Error> {
        match self.heap.first() {
            Some(_) if self.backward => self.step(),
            Some(&entry) => self.turn_around(entry),
            None if self.is_after => self.last(),
            None => Ok(()),
        }
    }

    fn lost(&self) -> Option<&Lost> {
        self.sources.iter().find_map(|source| source.lost())
    }
}

/// What a range reads: the memtables and tables of one moment, which exist as long as this does.
pub(super) trait Sources: Debug + Send {
    /// Returns a cursor for each memtable and table.
    fn cursors(&self) -> Vec<Box<dyn Cursor>>;
}

/// The versions of a key that an end steps over before it searches.
const STEPS: usize = if cfg!(test) { 3 } else { 8 };

/// A key and its value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// An iterator over the keys of a range and their values, in the order of the keys or, with
/// [`rev`](Iterator::rev), in the opposite order. Both ends can be taken in turn.
///
/// It shows one moment, whatever is written meanwhile, and reads as it goes: in memory it has a
/// block of each table.
///
/// A damaged block is an error once ([`Error::Damaged`]), and then the iterator goes on behind it.
/// Left out are all keys between the entries of that table on both sides of the block, and the
/// nearer one of them at most, whatever other tables have of them. So no entry is an older one of
/// its key, and nothing is left out without an error. After any other error it ends.
#[derive(Debug)]
pub struct Range {
    sources: Box<dyn Sources>,
    sequence: u64,
    /// Everything before was returned, or is not in the range.
    from: Bound<Vec<u8>>,
    /// Everything behind was returned, or is not in the range.
    to: Bound<Vec<u8>>,
    front: Option<MergeCursor>,
    back: Option<MergeCursor>,
    has_ended: bool,
    /// The error that comes next at the front.
    failure: Option<Error>,
    /// Memory for a key.
    key: Vec<u8>,
}

impl Range {
    /// Returns the entries between two bounds that a read at `sequence` sees.
    pub(super) fn new(
        sources: Box<dyn Sources>,
        sequence: u64,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<Self, Error> {
        let (from, to) = (copy_of(from)?, copy_of(to)?);
        let (front, back, has_ended, failure, key) = (None, None, false, None, Vec::new());
        Ok(Self { sources, sequence, from, to, front, back, has_ended, failure, key })
    }

    /// Returns the entries whose key starts with `prefix`.
    pub(super) fn prefix(
        sources: Box<dyn Sources>,
        sequence: u64,
        prefix: &[u8],
    ) -> Result<Self, Error> {
        let behind = behind(prefix)?;
        let to = behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Self::new(sources, sequence, Bound::Included(prefix), to)
    }

    /// Returns the bounds of what is left.
    pub(super) fn bounds(&self) -> Span {
        (self.from.clone(), self.to.clone())
    }

    fn next_pair(&mut self) -> Result<Option<Pair>, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let cursor = match &mut self.front {
            Some(front) => front,
            None => {
                let cursor = self.front.insert(MergeCursor::new(self.sources.cursors()));
                seek_to(cursor, &self.from)?;
                cursor
            }
        };
        while let Some(entry) = cursor.entry() {
            if !is_within(&self.to, entry.key, |key, to| key < to) {
                break;
            }
            let is_old = !is_within(&self.from, entry.key, |key, from| key > from);
            if is_old || entry.sequence > self.sequence {
                memory::copy_into(&mut self.key, entry.key)?;
                cursor.next()?;
                move_on(cursor, &self.key, if is_old { 0 } else { self.sequence })?;
                continue;
            }
            let found = match entry.value {
                Some(value) => Some((memory::copy_of(entry.key)?, memory::copy_of(value)?)),
                None => None,
            };
            exclude(&mut self.from, entry.key)?;
            let moved = cursor.next();
            if found.is_some() {
                self.failure = moved.err();
                return Ok(found);
            }
            moved?;
        }
        Ok(None)
    }

    fn previous_pair(&mut self) -> Result<Option<Pair>, Error> {
        let cursor = match &mut self.back {
            Some(back) => back,
            None => {
                let cursor = self.back.insert(MergeCursor::new(self.sources.cursors()));
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
                cursor
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

    /// Goes on behind a damaged block. Ends the iteration at its end or at another error.
    fn item(
        &mut self,
        found: Result<Option<Pair>, Error>,
        go_on: fn(&mut Self) -> bool,
    ) -> Option<Result<Pair, Error>> {
        self.has_ended = match &found {
            Ok(pair) => pair.is_none(),
            Err(Error::Damaged { .. }) => !go_on(self),
            Err(_) => true,
        };
        found.transpose()
    }

    /// Leaves the keys of a damaged block behind. Returns false if they are not known.
    fn go_on_forward(&mut self) -> bool {
        let front = self.front.take();
        let lost = front.as_ref().and_then(|front| front.lost());
        let is_new = |lost: &&Lost| is_within(&self.from, &lost.until, |key, from| key > from);
        let Some(lost) = lost.filter(is_new) else { return false };
        // The next key that there can be: a search for the last one would lead into the block.
        let mut behind = lost.until.clone();
        behind.push(0);
        self.from = Bound::Included(behind);
        true
    }

    /// The same from the back.
    fn go_on_backward(&mut self) -> bool {
        let back = self.back.take();
        let after = back.as_ref().and_then(|back| back.lost()?.after.as_ref());
        let is_new = |after: &&Vec<u8>| is_within(&self.to, after, |key, to| key < to);
        let Some(after) = after.filter(is_new) else { return false };
        self.to = Bound::Excluded(after.clone());
        true
    }
}

/// Moves to the first entry that is not before a bound.
pub(super) fn seek_to(cursor: &mut dyn Cursor, from: &Bound<Vec<u8>>) -> Result<(), Error> {
    match from {
        Bound::Included(key) => cursor.seek(key, LAST_SEQUENCE),
        Bound::Excluded(key) => cursor.seek(key, 0),
        Bound::Unbounded => cursor.first(),
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
pub(super) fn is_within(
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
    memory::copy_into(&mut at, key)?;
    *bound = Bound::Excluded(at);
    Ok(())
}

impl Iterator for Range {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let found = self.next_pair();
        self.item(found, Self::go_on_forward)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let found = self.previous_pair();
        self.item(found, Self::go_on_backward)
    }
}

impl FusedIterator for Range {}

#[cfg(test)]
mod tests;
