//! Range deletions: when everything in a part of the keys was deleted.
//!
//! A range deletion hides every older version of every key in its range. Ranges overlap, so they
//! are kept in pieces, which do not: a piece has a range, and the sequence numbers of the deletions
//! of all of it, the newest one first.
//!
//! ```text
//! deletion 5   |-----------|
//! deletion 8         |-----------|
//! pieces       |  5  | 8 5 |  8  |
//! ```
//!
//! A read sees one deletion of a piece: the newest one up to its own number. So of the deletions
//! between two numbers at which reads happen only the newest one is kept, as of the versions of a
//! key (`compaction/merge.rs`).
//!
//! The log has a record for each, a memtable and a table have the deletions that came with their
//! entries, and the state has all of them together, which reads ask. In a table they stand behind
//! the properties: for each piece the lengths of its two bounds, how many sequence numbers it has,
//! and these, 8 bytes each; then the bounds. The length of the second bound is one more, and 0 if
//! there is none.
//!
//! Cost: a lookup is a binary search. A change copies the pieces, some 80 bytes each.

use std::ops::Bound;
use std::sync::Arc;

use super::entry::{MAX_KEY, Span, behind, check_lengths, stripe_of};
use crate::Error;
use crate::kernel::bytes::{u64_at, usize_of};
use crate::kernel::memory;

/// Bytes of memory for a piece, besides its bounds.
const PIECE: u64 = 80;
/// Bytes before the sequence numbers of a stored piece.
const LENGTHS: usize = 3 * 8;

/// A part of the keys that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    /// Its first key.
    pub(super) from: Arc<[u8]>,
    /// The first key behind it; `None` if there is none.
    pub(super) to: Option<Arc<[u8]>>,
}

/// Deletions of ranges, in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RangeDeletions {
    /// In the order of the keys. They do not overlap.
    pieces: Vec<Piece>,
}

/// A part of the keys all of which was deleted at the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) keys: KeyRange,
    /// Newest first; there is one. Copies of the piece share them.
    sequences: Arc<[u64]>,
}

impl KeyRange {
    /// Returns the keys between two bounds, or `None` if there are none.
    ///
    /// # Errors
    /// [`Error::TooLong`] if a bound is longer than a key can be.
    pub(super) fn between(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Option<Self>, Error> {
        for bound in [from, to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                check_lengths(key.len() as u64, 0)?;
            }
        }
        let from = match from {
            Bound::Included(key) => Some(memory::copy_of(key)?),
            Bound::Excluded(key) => after(key)?,
            Bound::Unbounded => Some(Vec::new()),
        };
        let Some(from) = from else { return Ok(None) };
        let to = match to {
            Bound::Included(key) => after(key)?,
            Bound::Excluded(key) => Some(memory::copy_of(key)?),
            Bound::Unbounded => None,
        };
        let keys = Self { from: from.into(), to: to.map(Arc::from) };
        Ok((!keys.ends_by(&keys.from)).then_some(keys))
    }

    /// Returns the keys that start with `prefix`.
    pub(super) fn prefix(prefix: &[u8]) -> Result<Option<Self>, Error> {
        let to = behind(prefix)?;
        Self::between(
            Bound::Included(prefix),
            to.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        )
    }

    /// Returns the range of a record, if it is one. No second bound is empty.
    pub(super) fn of_record(from: &[u8], to: &[u8]) -> Result<Option<Self>, Error> {
        let to = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        Self::between(Bound::Included(from), to)
    }

    /// Returns whether no key from this one on is in the range.
    #[inline]
    fn ends_by(&self, key: &[u8]) -> bool {
        self.to.as_deref().is_some_and(|to| to <= key)
    }

    /// Returns whether there is no key between this range and one behind it that starts there.
    fn reaches(&self, key: &[u8]) -> bool {
        self.to.as_deref().is_none_or(|to| to >= key)
    }

    #[inline]
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        *self.from <= *key && !self.ends_by(key)
    }

    /// Returns whether a key between two bounds is in the range.
    fn overlaps(&self, (from, to): &Span) -> bool {
        let starts = match to {
            Bound::Included(to) => *self.from <= **to,
            Bound::Excluded(to) => *self.from < **to,
            Bound::Unbounded => true,
        };
        let ends = match from {
            Bound::Included(from) | Bound::Excluded(from) => self.ends_by(from),
            Bound::Unbounded => false,
        };
        starts && !ends
    }

    /// Returns the two bounds.
    pub(super) fn bounds(&self) -> Result<Span, Error> {
        let to = match &self.to {
            Some(to) => Bound::Excluded(memory::copy_of(to)?),
            None => Bound::Unbounded,
        };
        Ok((Bound::Included(memory::copy_of(&self.from)?), to))
    }
}

/// Returns the first key behind `key`, if there is one.
fn after(key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if key.len() as u64 == MAX_KEY {
        return behind(key);
    }
    let mut next = Vec::new();
    memory::reserve(&mut next, key.len() + 1)?;
    next.extend_from_slice(key);
    next.push(0);
    Ok(Some(next))
}

impl Piece {
    /// Returns the sequence number of the newest deletion up to `sequence`, or 0.
    #[inline]
    pub(super) fn newest(&self, sequence: u64) -> u64 {
        self.sequences.iter().copied().find(|&at| at <= sequence).unwrap_or(0)
    }

    /// Returns whether the keys of `next` follow at once, and were deleted at the same times.
    fn continues_in(&self, next: &Self) -> bool {
        self.keys.to.as_ref() == Some(&next.keys.from) && self.sequences == next.sequences
    }
}

impl RangeDeletions {
    /// Returns all deletions of several lists. `boundaries` are the sequence numbers at which reads
    /// happen, ascending, besides reads of what is newest.
    pub(super) fn of<'a>(lists: impl Iterator<Item = &'a Self>, boundaries: &[u64]) -> Self {
        let mut pieces: Vec<&Piece> = lists.flat_map(|list| &list.pieces).collect();
        // Then each piece changes the end of the list alone.
        pieces.sort_by(|one, other| one.keys.from.cmp(&other.keys.from));
        let mut all = Self::default();
        for piece in pieces {
            all.add_piece(piece.clone(), boundaries);
        }
        all
    }

    /// Adds a deletion.
    pub(super) fn add(&mut self, keys: KeyRange, sequence: u64, boundaries: &[u64]) {
        self.add_piece(Piece { keys, sequences: Arc::from([sequence]) }, boundaries);
    }

    fn add_piece(&mut self, new: Piece, boundaries: &[u64]) {
        let first = self.pieces.partition_point(|old| !old.keys.reaches(&new.keys.from));
        let is_before = |old: &Piece| new.keys.reaches(&old.keys.from);
        let end = self.pieces.partition_point(is_before);
        let cut = cut(&self.pieces[first..end], &new, boundaries);
        self.pieces.splice(first..end, cut);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns about how many bytes of memory they take.
    pub(super) fn bytes(&self) -> u64 {
        let bounds = |keys: &KeyRange| keys.from.len() + keys.to.as_ref().map_or(0, |to| to.len());
        self.pieces.iter().map(|piece| PIECE + bounds(&piece.keys) as u64).sum()
    }

    /// Returns the least and the greatest sequence number.
    pub(super) fn sequences(&self) -> Option<(u64, u64)> {
        let all = || self.pieces.iter().flat_map(|piece| piece.sequences.iter().copied());
        Some((all().min()?, all().max()?))
    }

    /// Returns the piece that has `key`.
    #[inline]
    pub(super) fn piece_of(&self, key: &[u8]) -> Option<&Piece> {
        let behind = self.pieces.partition_point(|piece| *piece.keys.from <= *key);
        let piece = self.pieces.get(behind.checked_sub(1)?)?;
        (!piece.keys.ends_by(key)).then_some(piece)
    }

    /// Returns the sequence number of the newest deletion of `key` up to `sequence`, or 0: no
    /// version before it can be seen.
    #[inline]
    pub(super) fn newest(&self, key: &[u8], sequence: u64) -> u64 {
        self.piece_of(key).map_or(0, |piece| piece.newest(sequence))
    }

    /// Returns whether a key between two bounds was deleted after `sequence`.
    pub(super) fn has_later(&self, span: &Span, sequence: u64) -> bool {
        let is_later = |piece: &&Piece| piece.sequences.first().is_some_and(|&at| at > sequence);
        self.pieces.iter().filter(is_later).any(|piece| piece.keys.overlaps(span))
    }

    /// Returns each range and when it was deleted, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&KeyRange, u64)> {
        self.pieces.iter().flat_map(|Piece { keys, sequences }| {
            sequences.iter().map(move |&sequence| (keys, sequence))
        })
    }

    /// Returns what a merge keeps: one deletion between two boundaries, and none before the first
    /// one if no older run stays, since then nothing older is left that it hides.
    pub(super) fn merged(&self, boundaries: &[u64], is_bottom: bool) -> Self {
        let mut kept = Self::default();
        for piece in &self.pieces {
            let is_kept = |at: &u64| !is_bottom || stripe_of(*at, boundaries) > 0;
            let sequences: Arc<[u64]> = piece.sequences.iter().copied().filter(is_kept).collect();
            if !sequences.is_empty() {
                kept.add_piece(Piece { keys: piece.keys.clone(), sequences }, boundaries);
            }
        }
        kept
    }

    /// Appends the pieces as a table stores them.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        for Piece { keys, sequences } in &self.pieces {
            let to = keys.to.as_deref().unwrap_or_default();
            let end = keys.to.as_ref().map_or(0, |to| to.len() as u64 + 1);
            let size = LENGTHS + 8 * sequences.len() + keys.from.len() + to.len();
            memory::reserve(bytes, size)?;
            for number in [keys.from.len() as u64, end, sequences.len() as u64] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            sequences.iter().for_each(|at| bytes.extend_from_slice(&at.to_le_bytes()));
            bytes.extend_from_slice(&keys.from);
            bytes.extend_from_slice(to);
        }
        Ok(())
    }

    /// Decodes all of `bytes`. Returns `None` if no table has these.
    pub(super) fn decode(mut bytes: &[u8]) -> Result<Option<Self>, Error> {
        let mut pieces: Vec<Piece> = Vec::new();
        while !bytes.is_empty() {
            let Some((piece, rest)) = decode_piece(bytes)? else { return Ok(None) };
            let is_behind = |last: &Piece| last.keys.ends_by(&piece.keys.from);
            if !pieces.last().is_none_or(is_behind) {
                return Ok(None);
            }
            memory::push(&mut pieces, piece)?;
            bytes = rest;
        }
        Ok(Some(Self { pieces }))
    }
}

/// Decodes the first piece. Returns it and what follows.
fn decode_piece(bytes: &[u8]) -> Result<Option<(Piece, &[u8])>, Error> {
    let Some((lengths, rest)) = bytes.split_at_checked(LENGTHS) else { return Ok(None) };
    let [from, end, count] = [0, 8, 16].map(|at| usize_of(u64_at(lengths, at)));
    let numbers = rest.split_at_checked(count.saturating_mul(8));
    let Some((numbers, rest)) = numbers else { return Ok(None) };
    let Some((from, rest)) = rest.split_at_checked(from) else { return Ok(None) };
    let Some((to, rest)) = rest.split_at_checked(end.saturating_sub(1)) else { return Ok(None) };
    let to = if end == 0 { Bound::Unbounded } else { Bound::Excluded(to) };
    let Ok(Some(keys)) = KeyRange::between(Bound::Included(from), to) else { return Ok(None) };
    let mut sequences = Vec::new();
    memory::reserve(&mut sequences, count)?;
    sequences.extend((0..count).map(|at| u64_at(numbers, 8 * at)));
    let is_sound = count > 0 && sequences.windows(2).all(|pair| pair[0] > pair[1]);
    Ok(is_sound.then_some((Piece { keys, sequences: sequences.into() }, rest)))
}

/// Returns the pieces of `old`, which are in order, together with `new`.
fn cut(old: &[Piece], new: &Piece, boundaries: &[u64]) -> Vec<Piece> {
    let all = || old.iter().chain([new]);
    let starts = all().map(|piece| &piece.keys.from);
    let ends = all().filter_map(|piece| piece.keys.to.as_ref());
    let mut cuts: Vec<&Arc<[u8]>> = starts.chain(ends).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut of_old = old.iter().peekable();
    for (from, next) in cuts.iter().zip(1..) {
        while of_old.next_if(|old| old.keys.ends_by(from)).is_some() {}
        let covers = |piece: &&Piece| piece.keys.contains(from);
        let covering = of_old.peek().copied().into_iter().chain([new]).filter(covers);
        let mut sequences: Vec<u64> =
            covering.flat_map(|piece| piece.sequences.iter().copied()).collect();
        if sequences.is_empty() {
            continue;
        }
        sequences.sort_unstable_by(|one, other| other.cmp(one));
        sequences.dedup_by_key(|at| stripe_of(*at, boundaries));
        let to = cuts.get(next).map(|to| Arc::clone(to));
        let keys = KeyRange { from: Arc::clone(from), to };
        let piece = Piece { keys, sequences: sequences.into() };
        match pieces.last_mut().filter(|last| last.continues_in(&piece)) {
            Some(last) => last.keys.to = piece.keys.to,
            None => pieces.push(piece),
        }
    }
    pieces
}

#[cfg(test)]
mod tests;
