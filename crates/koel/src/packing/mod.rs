//! The four slots of a bucket: how they are packed, and all that can be done with them packed.
//!
//! | file | buckets |
//! |---|---|
//! | `plain64` | plain slots, at most 64 bits: one register |
//! | `sorted64` | semi-sorted slots, at most 64 bits: one register beside the nibbles |
//! | `halves` | wider ones, plain or semi-sorted: two registers of two lanes |
//! | `sorted_wide` | semi-sorted ones whose lanes fit into one register without their code |
//! | `slots64` | slots of 64 bits: a register each |
//! | `unpacked` | a table that is being widened: narrow and wide buckets, read as `slots64` |
//!
//! A [`Packing`] has the masks of one layout. A table asks once which one it has
//! ([`with_packing`]), and everything below is compiled for it. `layout` says what the bits mean;
//! `swar` tests lanes, `narrow` has what `plain64` and `sorted64` share, `slot_coding` and
//! `semisort` encode and decode; `matching` and `prefix` compare with keys, `block` does so for 64
//! at once.

mod block;
mod bytes;
mod candidates;
mod halves;
mod layout;
mod marked;
mod matching;
mod narrow;
mod plain64;
mod prefix;
mod semisort;
mod slot_coding;
mod slots64;
mod sorted64;
mod sorted_wide;
mod swar;
mod unpacked;

use crate::address::geometry::Locations;
use crate::mem::vector::BLOCK;
pub(crate) use block::{Batch, Words, is_near};
pub(crate) use bytes::{bit_in_byte, byte_index, load, store};
pub(crate) use candidates::Candidates;
use halves::Halves;
pub(crate) use layout::{Bucket, MAX_VALUE_BITS, SLOTS, WIDE_SLOT_BITS};
pub use layout::{Codec, Layout};
pub(crate) use marked::Marked;
pub(crate) use matching::{Exact, Matching, Prefixed};
pub(crate) use narrow::{Narrow, either};
pub(crate) use plain64::Plain64;
use slot_coding::{Plain, Sorted};
use slots64::Slots64;
use sorted_wide::SortedWide;
pub(crate) use sorted64::Sorted64;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use swar::low_word;
pub(crate) use unpacked::{Unpacked, Widening};

/// What became of a new copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The only entry there was.
    Last,
    /// One of several equal ones.
    Copy,
    /// Nothing: there is none.
    Nothing,
}

/// What can be done with the buckets of one packing, which lie in `bytes` from `start` on.
///
/// A pair is the two buckets of a key, perhaps the same one twice: then it counts as one bucket.
/// The provided methods decode a bucket, change a slot and encode it again. Those of one register
/// have faster ones.
pub(crate) trait Packing {
    /// Whether lookups in batches ask the memory for buckets even where a cache has them.
    const PREFETCHES_NEAR: bool = true;

    /// Where a bucket starts: its first bit in the table.
    #[inline]
    fn start(bucket: u64, bucket_bits: u64) -> u64 {
        bucket * bucket_bits
    }

    /// Where the buckets of place `i` of a block start.
    #[inline]
    fn starts(locations: &Locations, i: usize) -> [u64; 2] {
        locations.bits(i)
    }

    /// The four slots.
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS];

    /// Writes the whole bucket.
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]);

    /// Whether a slot is empty.
    fn has_room(&self, bytes: &[u8], start: u64) -> bool;

    /// Whether a slot of the one or the other bucket matches its key. No branch on the data.
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool;

    /// Bit i: whether slot i matches the key.
    fn matching<M: Matching>(&self, bytes: &[u8], start: u64, key: u64) -> u32;

    /// [`matches`](Self::matches) for a block of pairs.
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        _words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        for (i, found) in found.iter_mut().enumerate() {
            batch.prefetch(i);
            *found =
                self.matches::<M>(batch.bytes, Self::starts(batch.ready, i), batch.keys::<M>(i));
        }
    }

    /// How many slots are empty.
    #[inline]
    fn vacancies(&self, bytes: &[u8], start: u64) -> u64 {
        copies_in(self.slots(bytes, start), 0)
    }

    /// Writes `new` over the first slot that holds `old`; false, and nothing written, if there is
    /// none. 0 is an empty slot.
    #[inline]
    fn replace(&self, bytes: &mut [u8], start: u64, old: u64, new: u64) -> bool {
        let mut slots = self.slots(bytes, start);
        let slot = slots.iter_mut().find(|slot| **slot == old);
        let found = slot.is_some();
        if let Some(slot) = slot {
            *slot = new;
            self.write(bytes, start, slots);
        }
        found
    }

    /// The slots of a pair that match their keys.
    #[inline]
    fn candidates<M: Matching>(
        &self,
        bytes: &[u8],
        starts: [u64; 2],
        keys: [u64; 2],
    ) -> Candidates {
        let bits = |i: usize| self.matching::<M>(bytes, starts[i], keys[i]);
        let other = if starts[0] == starts[1] { 0 } else { bits(1) };
        let slots = starts.map(|start| self.slots(bytes, start));
        Candidates::of_slots(slots, bits(0) | other << SLOTS)
    }

    /// How many slots of a pair hold `slot`.
    #[inline]
    fn copies(&self, bytes: &[u8], starts: [u64; 2], slot: u64) -> u64 {
        let [home, other] = starts.map(|start| copies_in(self.slots(bytes, start), slot));
        home + if starts[0] == starts[1] { 0 } else { other }
    }

    /// Fills an empty slot of the emptier bucket of a pair with `slot`, where there are at most
    /// `most` copies of it.
    #[inline]
    fn put(&self, bytes: &mut [u8], starts: [u64; 2], slot: u64, most: u64) -> Put {
        let copies = self.copies(bytes, starts, slot);
        if copies > most {
            return Put::Repeated(copies);
        }
        let [home, other] = starts.map(|start| self.vacancies(bytes, start));
        let chosen = usize::from(other > home);
        if self.replace(bytes, starts[chosen], 0, slot) { Put::Done } else { Put::Full }
    }

    /// Writes `new` over a slot of a pair that holds `old`, which is then taken out.
    #[inline]
    fn exchange(&self, bytes: &mut [u8], starts: [u64; 2], old: u64, new: u64) -> Taken {
        let copies = self.copies(bytes, starts, old);
        if !self.replace(bytes, starts[0], old, new) {
            self.replace(bytes, starts[1], old, new);
        }
        match copies {
            0 => Taken::Nothing,
            1 => Taken::Last,
            _ => Taken::Copy,
        }
    }
}

/// How many of these slots hold `slot`.
#[inline]
fn copies_in(slots: [u64; SLOTS], slot: u64) -> u64 {
    slots.iter().map(|&held| u64::from(held == slot)).sum()
}

/// The packing of a table. The representation gives it a tag of its own: one hidden in a field of a
/// packing takes three instructions to read, which are 6 % of a lookup.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum AnyPacking {
    Plain64(Plain64),
    Sorted64(Sorted64),
    PlainHalves(Halves<Plain>),
    SortedHalves(Halves<Sorted>),
    SortedWide(SortedWide),
    Slots64(Slots64),
    Unpacked(Unpacked),
}

/// What `$work` gives for the packing `$any`, which it calls `$packing`.
macro_rules! with_packing {
    ($any:expr, $packing:ident => $work:expr) => {{
        use $crate::packing::AnyPacking;
        match $any {
            AnyPacking::Plain64($packing) => $work,
            AnyPacking::Sorted64($packing) => $work,
            AnyPacking::PlainHalves($packing) => $work,
            AnyPacking::SortedHalves($packing) => $work,
            AnyPacking::SortedWide($packing) => $work,
            AnyPacking::Slots64($packing) => $work,
            AnyPacking::Unpacked($packing) => $work,
        }
    }};
}
pub(crate) use with_packing;

impl AnyPacking {
    /// The packing of a layout, in a table whose buckets may be in the midst of being widened.
    pub(crate) fn new(layout: Layout, widening: Option<Widening>) -> Self {
        if let Some(widening) = widening {
            return Self::Unpacked(Unpacked::new(layout, widening));
        }
        let is_narrow = layout.bucket_bits() <= u64::BITS;
        match layout.codec() {
            Codec::Plain if is_narrow => Self::Plain64(Plain64::new(layout)),
            Codec::Plain if layout.slot_bits() == WIDE_SLOT_BITS => {
                Self::Slots64(Slots64::new(layout))
            }
            Codec::Plain => Self::PlainHalves(Halves::new(layout)),
            Codec::SemiSorted if is_narrow => Self::Sorted64(Sorted64::new(layout)),
            Codec::SemiSorted if SortedWide::fits(layout) => {
                Self::SortedWide(SortedWide::new(layout))
            }
            Codec::SemiSorted => Self::SortedHalves(Halves::new(layout)),
        }
    }

    /// How far the last byte that is read of a bucket is from the first.
    pub(crate) fn reach(&self) -> usize {
        let bits = match self {
            Self::Plain64(_) | Self::Sorted64(_) => 64,
            Self::PlainHalves(_) | Self::SortedWide(_) => 128,
            Self::SortedHalves(halves) => halves.bits_read(),
            Self::Slots64(_) | Self::Unpacked(_) => 256,
        };
        bits / 8 - 1
    }
}

#[cfg(test)]
mod tests;
