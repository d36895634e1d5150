//! Joins pieces: checks each, and puts its segment in its place.
//!
//! [`Arrivals`] has the rules for all pieces of a filter. `join` needs memory for the filter and
//! one piece; file/pieces.rs writes the file of the filter instead.

use alloc::vec::Vec;

use super::error::PieceError;
use super::message::PIECE;
use super::plan::PiecePlan;
use crate::error::{FullError, ImageError, require};
use crate::filter::bulk::Segment;
#[cfg(feature = "std")]
use crate::filter::bulk::whole_address;
use crate::image::frame::{Framed, MessageError};
use crate::image::shape::Shape;
#[cfg(feature = "std")]
use crate::image::{Header, Kind};
#[cfg(feature = "std")]
use crate::side::Pair;
use crate::{CuckooFilter, FilterView};

impl PiecePlan {
    /// The filter of these pieces, in any order. It is the same whoever built them.
    ///
    /// Give the number of `keys` that went into all parts, if it is known: then a lost part or
    /// piece is noticed, and segments without a piece are empty. Without it, each segment must have
    /// a piece, also an empty one. A piece that comes twice is used once.
    ///
    /// O(bytes): checks each piece in full, and copies it.
    ///
    /// # Errors
    /// [`PieceError::Piece`] names the first piece that is damaged, of another plan, or differs
    /// from an earlier one of its segment. [`PieceError::Missing`] and [`PieceError::Keys`] if
    /// something was lost.
    pub fn join<P: AsRef<[u8]>>(
        &self,
        pieces: impl IntoIterator<Item = P>,
        keys: Option<u64>,
    ) -> Result<CuckooFilter, PieceError> {
        let mut filter =
            CuckooFilter::empty(self.shape, self.profile).ok_or(PieceError::NoMemory)?;
        let mut arrivals = Arrivals::new(self)?;
        let body = &mut filter.body;
        let bytes = body.table.segments_mut();
        let mut segments = Vec::new();
        segments.try_reserve_exact(bytes.len()).map_err(|_| PieceError::NoMemory)?;
        segments.extend(bytes.map(Segment::new));
        for piece in pieces {
            let Some((segment, view)) = arrivals.admit(piece.as_ref())? else { continue };
            view.verify().map_err(|error| arrivals.refused(MessageError::Forged(error)))?;
            segments[segment].take_in(&view).ok_or(PieceError::NoMemory)?;
        }
        arrivals.finish(keys)?;
        body.state.take_in(&self.shape.geometry(), segments).map_err(|full| match full {
            FullError::NoMemory => PieceError::NoMemory,
            full => PieceError::TooMany(full),
        })?;
        Ok(filter)
    }

    /// The shape of a segment as a filter of its own.
    pub(super) fn segment_shape(&self) -> Shape {
        Shape { segment_bits: 0, ..self.shape }
    }
}

/// What the file of all pieces is made of.
#[cfg(feature = "std")]
impl PiecePlan {
    /// The bytes of a segment in the table. Several segments are whole bytes.
    pub(crate) fn segment_bytes<'a>(&self, segment: &'a FilterView<'_>) -> &'a [u8] {
        let bits =
            u64::from(self.shape.segment_buckets) * u64::from(self.shape.layout.bucket_bits());
        let bytes = segment.body.table.bytes();
        // The table has padding behind its last bucket.
        &bytes[..usize::try_from(bits.div_ceil(8)).unwrap_or(0).min(bytes.len())]
    }

    /// The counters of a segment, with their names in the whole table.
    pub(crate) fn counters(
        &self,
        number: usize,
        segment: &FilterView<'_>,
    ) -> impl Iterator<Item = (u64, u64)> {
        let geometry = self.shape.geometry();
        let counters = segment.body.state.side.counters.iter();
        counters.map(move |(name, count)| (geometry.name_in_whole(number as u64, name), count))
    }

    /// The stash of a segment, by the addresses in the whole table.
    pub(crate) fn stash(
        &self,
        number: usize,
        segment: &FilterView<'_>,
    ) -> impl Iterator<Item = (Pair, u64)> {
        let bits = self.shape.segment_bits;
        let stash = segment.body.state.side.stash.iter();
        stash.map(move |((at, _), copies)| ((whole_address(number as u64, at, bits), 0), copies))
    }

    /// The header of the file of all pieces, before the first has come.
    pub(crate) fn header(&self) -> Header {
        Header::of(Kind::Filter, self.shape, &self.profile, None, None)
    }

    /// Adds the totals of a segment to those of the file.
    pub(crate) fn add(&self, segment: &FilterView<'_>, to: &mut Header) -> Result<(), PieceError> {
        let state = &segment.body.state;
        let len = to.len.checked_add(state.len);
        to.len = len.ok_or(PieceError::TooMany(FullError::Overflow))?;
        to.entries += state.entries;
        to.distinct += state.distinct();
        to.counters += state.side.counters.len();
        to.stashed += state.side.stash.len();
        let limit = self.profile.counter_limit;
        let too_many = PieceError::TooMany(FullError::Counters { limit });
        if to.counters > limit { Err(too_many) } else { Ok(()) }
    }
}

/// The pieces that have come: which segments have one, and how many keys went into them.
pub(crate) struct Arrivals<'p> {
    plan: &'p PiecePlan,
    digest: u64,
    /// The checksum of the piece of each segment.
    seen: Vec<Option<u64>>,
    keys: u64,
    /// Pieces so far.
    number: u64,
}

impl<'p> Arrivals<'p> {
    pub(crate) fn new(plan: &'p PiecePlan) -> Result<Self, PieceError> {
        let segments = usize::try_from(plan.segments()).map_err(|_| PieceError::NoMemory)?;
        let mut seen = Vec::new();
        seen.try_reserve_exact(segments).map_err(|_| PieceError::NoMemory)?;
        seen.resize(segments, None);
        Ok(Self { plan, digest: plan.digest(), seen, keys: 0, number: 0 })
    }

    /// The number of a piece's segment, and the segment, whose buckets are not verified yet. `None`
    /// if an equal piece came before.
    pub(crate) fn admit<'a>(
        &mut self,
        piece: &'a [u8],
    ) -> Result<Option<(usize, FilterView<'a>)>, PieceError> {
        let number = self.number;
        self.number += 1;
        self.look_at(piece).map_err(|fault| PieceError::Piece { number, fault })
    }

    fn look_at<'a>(
        &mut self,
        piece: &'a [u8],
    ) -> Result<Option<(usize, FilterView<'a>)>, MessageError> {
        let Framed { words: [plan, segment, keys], checksum, content } = PIECE.read(piece)?;
        if plan != self.digest {
            return Err(MessageError::Foreign);
        }
        let forged = |field, got| MessageError::Forged(ImageError::Field { field, got });
        let index = usize::try_from(segment).ok().filter(|&index| index < self.seen.len());
        let index = index.ok_or(forged("segment", segment))?;
        match self.seen[index] {
            Some(seen) if seen == checksum => return Ok(None),
            Some(_) => return Err(MessageError::Contradicts { segment }),
            None => {}
        }
        let view = FilterView::open(content).map_err(MessageError::Forged)?;
        let is_like_it = view.body.shape() == self.plan.segment_shape()
            && !view.body.table.grows()
            && view.body.state.profile.route == self.plan.profile.route;
        if !is_like_it || view.len() > keys {
            return Err(forged("keys", keys));
        }
        // Nothing is refuted while a filter is built, and the lowest bits of the addresses in a
        // segment are those that the whole table has for its number.
        require("corrections", view.corrections(), view.corrections() == 0)
            .map_err(MessageError::Forged)?;
        let lost = (1 << self.plan.shape.segment_bits) - 1;
        for ((address, _), _) in view.body.state.side.stash.iter() {
            let is_whole = address & lost == 0;
            require("stashed key", address, is_whole).map_err(MessageError::Forged)?;
        }
        self.seen[index] = Some(checksum);
        self.keys = self.keys.saturating_add(keys);
        Ok(Some((index, view)))
    }

    /// The error for the piece that was admitted last.
    pub(crate) fn refused(&self, fault: MessageError) -> PieceError {
        PieceError::Piece { number: self.number.saturating_sub(1), fault }
    }

    /// Checks that nothing is missing. Returns the number of keys that went into the pieces.
    pub(crate) fn finish(&self, expected: Option<u64>) -> Result<u64, PieceError> {
        match expected {
            Some(expected) if expected != self.keys => {
                Err(PieceError::Keys { expected, got: self.keys })
            }
            Some(_) => Ok(self.keys),
            None => {
                let mut missing = (0..).zip(&self.seen).filter(|(_, seen)| seen.is_none());
                let Some((segment, _)) = missing.next() else { return Ok(self.keys) };
                Err(PieceError::Missing { segment, missing: 1 + missing.count() as u64 })
            }
        }
    }
}
