//! The four slots of a bucket: how they are packed, and all operations on them packed.
//!
//! | file | buckets |
//! |---|---|
//! | `narrow` | at most 64 bits: one register; semi-sorted ones have their nibbles, too |
//! | `sorted_wide` | wider semi-sorted ones whose lanes fit into one register |
//! | `halves` | all others of at most 128 bits, plain or semi-sorted: two registers of two lanes |
//! | `slots64` | slots of 64 bits: a register each |
//! | `unpacked` | a table that is being widened: narrow and wide buckets, read as `slots64` |
//!
//! A [`Packing`] has the masks of one layout. A table chooses its packing once ([`with_packing`]),
//! and the code below that is compiled for it. Without the feature `fast` there is only `unpacked`,
//! for all of them.
//!
//! * `layout` says what the bits mean, `marked` what those of a growing table's fingerprints mean.
//! * `coding` encodes and decodes slots.
//! * `lanes` and `prefix` compare all lanes of a register with a key at once, `block` does so for
//!   64 keys.

mod bits;
mod block;
mod candidates;
mod coding;
mod halves;
mod lanes;
mod layout;
mod marked;
mod narrow;
mod prefix;
mod slots64;
mod sorted_wide;
mod unpacked;

use crate::mem::vector::BLOCK;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use bits::low_word;
pub(crate) use bits::{SLOTS, bit_in_byte, byte_index, either, load, store};
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use block::match_words;
pub(crate) use block::{Batch, Words, is_near};
pub(crate) use candidates::Candidates;
use coding::{Coding, Plain, Sorted};
use halves::Halves;
pub(crate) use lanes::{Exact, Matching, Prefixed};
use lanes::{Lanes, Opened, pair};
pub(crate) use layout::{Bucket, MAX_VALUE_BITS, WIDE_SLOT_BITS};
pub use layout::{Codec, Layout};
pub(crate) use marked::Marked;
pub(crate) use narrow::{Narrow, Plain64, Sorted64};
use slots64::Slots64;
use sorted_wide::SortedWide;
pub(crate) use unpacked::{Unpacked, Widening};
use wide::u64x2;

/// The result of adding a copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The copy has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, namely this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// The result of taking out a copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was the only copy.
    Last,
    /// There are others.
    Copy,
    /// There was none.
    Absent,
}

/// The operations on buckets of one packing, which lie in `bytes`, each from a `start` on.
///
/// A pair is the two buckets of a key. If both are the same bucket, it counts once. The provided
/// methods test the lanes of registers; those that write decode the bucket and encode it again.
/// Packings of one register have faster ones.
pub(crate) trait Packing {
    /// Whether batched lookups prefetch buckets even where a cache has them.
    const PREFETCHES_NEAR: bool = true;

    /// How slots lie in a bucket.
    type Coding: Coding;

    /// A bucket as registers: an array of one, two or four, each of as many lanes.
    type Registers: AsRef<[Opened<u64>]>;

    /// The masks of one register.
    fn lanes(&self) -> &Lanes;

    /// The registers of a bucket.
    fn registers(&self, bytes: &[u8], start: u64) -> Self::Registers;

    /// Writes the whole bucket.
    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let width = self.lanes().width;
        let word = Self::Coding::encode(slots, width);
        store(bytes, start, Self::Coding::bucket_bits(width), word);
    }

    /// The four slots.
    #[inline]
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS] {
        slots_of::<Self::Coding>(self.lanes(), self.registers(bytes, start).as_ref())
    }

    /// Whether a slot is empty.
    #[inline]
    fn has_room(&self, bytes: &[u8], start: u64) -> bool {
        self.lanes().has_room::<Self::Coding>(self.registers(bytes, start).as_ref())
    }

    /// How many slots are empty.
    #[inline]
    fn vacancies(&self, bytes: &[u8], start: u64) -> u64 {
        let empty = |&word| self.lanes().count(self.lanes().empty::<Self::Coding>(word));
        self.registers(bytes, start).as_ref().iter().map(empty).sum()
    }

    /// Whether a slot of either bucket matches its key. No branch on the data.
    #[inline]
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool {
        let (home, other) = (self.registers(bytes, starts[0]), self.registers(bytes, starts[1]));
        if let (&[home], &[other]) = (home.as_ref(), other.as_ref()) {
            return self.lanes().pair_matches::<M, Self::Coding>([home, other], keys);
        }
        let any = |registers, key| self.lanes().any_match::<M, Self::Coding>(registers, key);
        let [one, other] = (any(home.as_ref(), keys[0]) | any(other.as_ref(), keys[1])).to_array();
        (one | other) != 0
    }

    /// [`matches`](Self::matches) for a block of pairs.
    #[inline]
    fn match_block<M: Matching>(
        &self,
        batch: &Batch<'_>,
        _words: &mut [Words; 2],
        found: &mut [bool; BLOCK],
    ) {
        for (i, found) in found.iter_mut().enumerate() {
            batch.prefetch(i);
            *found = self.matches::<M>(batch.bytes, batch.ready.bits(i), batch.keys::<M>(i));
        }
    }

    /// The slots of a pair that match their keys.
    #[inline(always)]
    fn candidates<M: Matching>(
        &self,
        bytes: &[u8],
        starts: [u64; 2],
        keys: [u64; 2],
    ) -> Candidates {
        let (home, other) = (self.registers(bytes, starts[0]), self.registers(bytes, starts[1]));
        let (lanes, pair) = (self.lanes(), [home.as_ref(), other.as_ref()]);
        let same = starts[0] == starts[1];
        if let ([home], [other], false) = (pair[0], pair[1], Self::Coding::SORTED) {
            let tops = |&word, key| lanes.matching_tops::<M, Self::Coding>(word, key);
            let tops = once([tops(home, keys[0]), tops(other, keys[1])], same);
            return Candidates::of_lanes(lanes, [home.0, other.0], tops);
        }
        let bits = |i: usize| matching_bits::<M, Self::Coding>(lanes, pair[i], keys[i]);
        let of_other = if same { 0 } else { bits(1) };
        let slots = [0, 1].map(|i: usize| slots_of::<Self::Coding>(lanes, pair[i]));
        Candidates::of_slots(slots, bits(0) | of_other << SLOTS)
    }

    /// How many slots of a pair hold `slot`.
    #[inline]
    fn copies(&self, bytes: &[u8], starts: [u64; 2], slot: u64) -> u64 {
        let copies = |start| Bucket(self.slots(bytes, start)).copies(slot);
        copies(starts[0]) + if starts[0] == starts[1] { 0 } else { copies(starts[1]) }
    }

    /// Writes `new` over the first slot that holds `old`. Returns false, and writes nothing, if
    /// there is none. 0 is an empty slot.
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

    /// Fills an empty slot of the emptier bucket of a pair with `slot`, if there are at most `most`
    /// copies of it.
    #[inline]
    fn put(&self, bytes: &mut [u8], starts: [u64; 2], slot: u64, most: u64) -> Put {
        // Maplets take any number of copies, and expiring filters know that there is none.
        if most < u64::MAX {
            let copies = self.copies(bytes, starts, slot);
            if copies > most {
                return Put::Repeated(copies);
            }
        }
        let [home, other] = starts.map(|start| self.vacancies(bytes, start));
        if home.max(other) == 0 {
            return Put::Full;
        }
        let chosen = usize::from(other > home);
        if self.replace(bytes, starts[chosen], 0, slot) { Put::Done } else { Put::Full }
    }

    /// Writes `new` over a slot of a pair that holds `old`.
    #[inline]
    fn exchange(&self, bytes: &mut [u8], starts: [u64; 2], old: u64, new: u64) -> Taken {
        let copies = self.copies(bytes, starts, old);
        if !self.replace(bytes, starts[0], old, new) {
            self.replace(bytes, starts[1], old, new);
        }
        match copies {
            0 => Taken::Absent,
            1 => Taken::Last,
            _ => Taken::Copy,
        }
    }
}

/// The lanes of a pair. Those of one bucket twice count once.
#[inline]
fn once([home, other]: [u64; 2], same: bool) -> [u64; 2] {
    [home, if same { 0 } else { other }]
}

/// The four slots in these registers.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a bucket has four lanes")]
fn slots_of<C: Coding>(lanes: &Lanes, registers: &[Opened<u64>]) -> [u64; SLOTS] {
    let count = SLOTS / registers.len();
    let slot = |i: usize| {
        let ((word, nibbles), lane) = (registers[i / count], (i % count) as u32);
        C::slot(lanes.lane(word, lane), nibbles, lane)
    };
    [slot(0), slot(1), slot(2), slot(3)]
}

/// Bit i is set if slot i matches the key. The vector unit compares two registers at once.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a bucket has four lanes")]
fn matching_bits<M: Matching, C: Coding>(
    lanes: &Lanes,
    registers: &[Opened<u64>],
    key: u64,
) -> u32 {
    if let &[word] = registers {
        return lanes.bits(lanes.matching_tops::<M, C>(word, key), SLOTS as u32);
    }
    let (count, pattern) = ((SLOTS / registers.len()) as u32, pair([lanes.pattern::<C>(key); 2]));
    let bits = |&words: &[Opened<u64>; 2]| {
        let [one, other] = M::tops::<u64x2, C>(lanes, pair(words), pattern).to_array();
        lanes.bits(one, count) | lanes.bits(other, count) << count
    };
    registers.as_chunks().0.iter().rev().fold(0, |all, words| all << (2 * count) | bits(words))
}

/// The packing of a table. The representation gives it a tag of its own: a tag that is hidden in a
/// field takes three instructions to read, 6 % of a lookup.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum AnyPacking {
    Plain64(Plain64, Fast),
    Sorted64(Sorted64, Fast),
    PlainHalves(Halves<Plain>, Fast),
    SortedHalves(Halves<Sorted>, Fast),
    SortedWide(SortedWide, Fast),
    Slots64(Slots64, Fast),
    Unpacked(Unpacked),
}

/// That there is code for each layout. Without the feature `fast` it has no value, so the compiler
/// leaves out all packings but [`Unpacked`], which reads and writes every layout.
#[derive(Clone, Copy)]
pub(crate) enum Fast {
    #[cfg(feature = "fast")]
    Yes,
}

#[cfg(feature = "fast")]
const FAST: Option<Fast> = Some(Fast::Yes);
#[cfg(not(feature = "fast"))]
const FAST: Option<Fast> = None;

/// Evaluates `$work` with `$packing` bound to the packing in `$any`, whichever it is.
macro_rules! with_packing {
    ($any:expr, $packing:ident => $work:expr) => {{
        use $crate::packing::AnyPacking;
        match $any {
            AnyPacking::Plain64($packing, _) => $work,
            AnyPacking::Sorted64($packing, _) => $work,
            AnyPacking::PlainHalves($packing, _) => $work,
            AnyPacking::SortedHalves($packing, _) => $work,
            AnyPacking::SortedWide($packing, _) => $work,
            AnyPacking::Slots64($packing, _) => $work,
            AnyPacking::Unpacked($packing) => $work,
        }
    }};
}
pub(crate) use with_packing;

impl AnyPacking {
    /// The packing of a layout. `widening` is given while the buckets of the table are widened.
    pub(crate) fn new(layout: Layout, widening: Option<Widening>) -> Self {
        let (None, Some(fast)) = (widening, FAST) else {
            let widening = widening.unwrap_or(Widening { narrow: layout, below: 0 });
            return Self::Unpacked(Unpacked::new(layout, widening));
        };
        let is_narrow = layout.bucket_bits() <= u64::BITS;
        match layout.codec() {
            Codec::Plain if is_narrow => Self::Plain64(Plain64::new(layout), fast),
            Codec::Plain if layout.slot_bits() == WIDE_SLOT_BITS => {
                Self::Slots64(Slots64::new(layout), fast)
            }
            Codec::Plain => Self::PlainHalves(Halves::new(layout), fast),
            Codec::SemiSorted if is_narrow => Self::Sorted64(Sorted64::new(layout), fast),
            Codec::SemiSorted if SortedWide::fits(layout) => {
                Self::SortedWide(SortedWide::new(layout), fast)
            }
            Codec::SemiSorted => Self::SortedHalves(Halves::new(layout), fast),
        }
    }

    /// How far the last byte that is read of a bucket is from the first.
    pub(crate) fn reach(&self) -> usize {
        let bits = match self {
            Self::Plain64(..) | Self::Sorted64(..) => 64,
            Self::PlainHalves(..) | Self::SortedWide(..) => 128,
            Self::SortedHalves(halves, _) => halves.bits_read(),
            Self::Slots64(..) | Self::Unpacked(_) => 256,
        };
        bits / 8 - 1
    }
}

#[cfg(test)]
mod tests;
