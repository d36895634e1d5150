//! What the bits of a bucket mean: the codec, and the widths of fingerprint and value.
//!
//! A bucket has four slots. A slot is a fingerprint; in a maplet, the value is above it. A slot of
//! zeros is empty. There are two codecs:
//!
//! ```text
//!     plain          | slot 3 | slot 2 | slot 1 | slot 0 |                   4 * s bits
//!     semi-sorted    | code | high 3 | high 2 | high 1 | high 0 |            4 * s - 4 bits
//!                      12        each the slot without its low 4 bits
//! ```
//!
//! A slot with a value that needs more than 32 bits has 64: the fingerprint, the value above it,
//! and zeros above that.
//!
//! Buckets follow one another without gaps. Plain buckets are whole bytes. A semi-sorted one starts
//! at a multiple of 4 bits. Widths are numbers at run time: one piece of code serves every width.

use core::fmt;

use super::bits::SLOTS;
use super::coding::{Coding, Plain, Sorted};
use super::marked::Marked;
use crate::address::geometry::{CORE_BITS, CORES};

/// The widest bucket in bits, except for slots of [`WIDE_SLOT_BITS`].
pub(crate) const MAX_BUCKET_BITS: u32 = 128;
/// Bits of a slot with a value if four such slots do not fit into [`MAX_BUCKET_BITS`].
pub(crate) const WIDE_SLOT_BITS: u32 = 64;

/// Bits of the widest value, which leaves 24 bits of a slot to the fingerprint.
pub(crate) const MAX_VALUE_BITS: u32 = 40;

/// How four slots are packed into a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Stores each slot as it is: fastest.
    #[default]
    Plain,
    /// Sorts the low four bits of the slots and stores them as one code of 12 bits: one bit less
    /// per slot.
    SemiSorted,
}

/// The packing of a filter's buckets: codec and widths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    codec: Codec,
    fingerprint_bits: u32,
    value_bits: u32,
    marked: bool,
    /// The largest value, and a value of 1 in its place in a slot. Computed once, because a shift
    /// by a number in memory takes three instructions.
    largest_value: u64,
    value_unit: u64,
}

impl Layout {
    /// The layout of these widths. `None` if the fingerprint is too short, if a bucket does not fit
    /// into [`MAX_BUCKET_BITS`], or if a plain bucket is not whole bytes.
    pub(crate) fn new(codec: Codec, fingerprint_bits: u32, value_bits: u32) -> Option<Self> {
        let is_wide = fingerprint_bits >= WIDE_SLOT_BITS || value_bits > MAX_VALUE_BITS;
        if fingerprint_bits < CORE_BITS + 2 || is_wide {
            return None;
        }
        let layout = Self::of(codec, fingerprint_bits, value_bits);
        let fits = match codec {
            Codec::Plain => {
                4 * fingerprint_bits <= MAX_BUCKET_BITS
                    && fingerprint_bits + value_bits <= layout.slot_bits()
                    && layout.bucket_bits().is_multiple_of(8)
            }
            Codec::SemiSorted => layout.bucket_bits() <= MAX_BUCKET_BITS,
        };
        fits.then_some(layout)
    }

    /// [`new`](Self::new), for widths that were checked.
    pub(crate) const fn of(codec: Codec, fingerprint_bits: u32, value_bits: u32) -> Self {
        let largest_value = (1 << value_bits) - 1;
        let value_unit = 1 << fingerprint_bits;
        Self { codec, fingerprint_bits, value_bits, marked: false, largest_value, value_unit }
    }

    /// This layout with marked fingerprints, for a table that grows.
    pub(crate) const fn with_marks(self) -> Self {
        Self { marked: true, ..self }
    }

    /// Reads marked fingerprints; `None` for a layout without them.
    pub(crate) const fn marks(&self) -> Option<Marked> {
        if self.marked { Some(Marked::new(self.fingerprint_bits)) } else { None }
    }

    /// How slots are packed.
    #[must_use]
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// Bits of a fingerprint. In a filter that has grown, one of them marks how many others are
    /// stored.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Bits of a fingerprint without its core and its mark.
    pub(crate) const fn fraction_bits(&self) -> u32 {
        self.fingerprint_bits - CORE_BITS - self.marked as u32
    }

    /// Bits of the value beside each fingerprint; 0 in a filter.
    #[must_use]
    pub const fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// The largest value that a slot can hold.
    #[inline]
    pub(crate) const fn largest_value(&self) -> u64 {
        self.largest_value
    }

    /// Bits of a bucket of four slots.
    #[must_use]
    pub const fn bucket_bits(&self) -> u32 {
        match self.codec {
            Codec::Plain => 4 * self.slot_bits(),
            Codec::SemiSorted => 4 * self.slot_bits() - 4,
        }
    }

    pub(crate) const fn slot_bits(&self) -> u32 {
        if self.is_wide() { WIDE_SLOT_BITS } else { self.fingerprint_bits + self.value_bits }
    }

    /// Whether a slot has [`WIDE_SLOT_BITS`]; only slots with a value do.
    const fn is_wide(&self) -> bool {
        let bits = self.fingerprint_bits + self.value_bits;
        matches!(self.codec, Codec::Plain) && self.value_bits > 0 && 4 * bits > MAX_BUCKET_BITS
    }

    /// The slot of a fingerprint and a value.
    #[inline]
    pub(crate) const fn slot(&self, fingerprint: u64, value: u64) -> u64 {
        (value * self.value_unit) | fingerprint
    }

    /// The value of a slot.
    #[inline]
    pub(crate) const fn value_of(&self, slot: u64) -> u64 {
        slot >> self.fingerprint_bits
    }

    /// The fingerprint of a slot.
    #[inline]
    pub(crate) const fn fingerprint_of(&self, slot: u64) -> u64 {
        slot & (u64::MAX >> (u64::BITS - self.fingerprint_bits))
    }

    /// Converts a slot of `narrow`, a layout without marks, to this layout, whose fingerprints have
    /// marks.
    pub(crate) fn marked_slot(&self, narrow: Self, slot: u64) -> u64 {
        let of = |marked: Marked| marked.of_unmarked(slot, narrow.fraction_bits());
        if slot == 0 { 0 } else { self.marks().map_or(slot, of) }
    }

    /// Converts a slot of this layout to `narrow`, a layout without marks. Drops the bits that do
    /// not fit.
    pub(crate) fn unmarked_slot(&self, narrow: Self, slot: u64) -> u64 {
        let of = |marked: Marked| marked.unmarked(slot, narrow.fraction_bits());
        if slot == 0 { 0 } else { self.marks().map_or(slot, of) }
    }

    /// Whether a key may have this fingerprint: it has a core, and a mark if the layout has marks.
    pub(crate) fn is_fingerprint(&self, fingerprint: u64) -> bool {
        match self.marks() {
            None => fingerprint >> self.fraction_bits() & CORES != 0,
            Some(marked) => marked.is_sound(fingerprint),
        }
    }

    /// The four slots of a bucket that fits into 128 bits.
    pub(crate) fn decode(&self, word: u128) -> Bucket {
        Bucket(match self.codec {
            Codec::Plain => Plain::decode(word, self.slot_bits()),
            Codec::SemiSorted => Sorted::decode(word, self.slot_bits() - Sorted::CUT),
        })
    }

    /// The word of a bucket. A semi-sorted word depends on the set of slots, not on their order.
    pub(crate) fn encode(&self, bucket: Bucket) -> u128 {
        match self.codec {
            Codec::Plain => Plain::encode(bucket.0, self.slot_bits()),
            Codec::SemiSorted => Sorted::encode(bucket.0, self.slot_bits() - Sorted::CUT),
        }
    }

    /// Whether [`encode`](Self::encode) gives this word for its slots. A plain one always is.
    pub(crate) fn is_canonical(&self, word: u128) -> bool {
        self.codec == Codec::Plain || self.encode(self.decode(word)) == word
    }

    /// Whether this crate could have written this bucket of a filter.
    pub(crate) fn is_sound(&self, word: u128) -> bool {
        let bucket = self.decode(word);
        self.is_canonical(word) && bucket.entries().all(|slot| self.is_fingerprint(slot))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.codec {
            Codec::Plain => "plain",
            Codec::SemiSorted => "semi-sorted",
        };
        write!(f, "{name} {SLOTS}x{}", self.fingerprint_bits)?;
        if self.value_bits > 0 {
            write!(f, "+{}", self.value_bits)?;
        }
        if self.marked {
            f.write_str(", marked")?;
        }
        Ok(())
    }
}

/// The same words as `Display`.
impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The decoded slots of one bucket; 0 is an empty slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket(pub(crate) [u64; SLOTS]);

impl Bucket {
    /// How many slots hold exactly `slot`.
    #[inline]
    pub(crate) fn copies(&self, slot: u64) -> u64 {
        self.0.iter().map(|&held| u64::from(held == slot)).sum()
    }

    /// The slots in use.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> {
        self.0.into_iter().filter(|&slot| slot != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritten_code_is_not_canonical() {
        let layout = Layout::new(Codec::SemiSorted, 13, 0).unwrap();
        assert!(layout.is_canonical(3875 << 36));
        assert!(!layout.is_canonical(3876 << 36));
        assert!(!layout.is_canonical(4095 << 36));
    }

    #[test]
    fn the_text_of_a_layout_is_unambiguous() {
        let layout = |codec, bits, values| Layout::new(codec, bits, values).unwrap();
        let says = |layout: Layout, text: &str| assert_eq!(alloc::format!("{layout}"), text);
        says(layout(Codec::Plain, 12, 0), "plain 4x12");
        says(layout(Codec::SemiSorted, 13, 5), "semi-sorted 4x13+5");
        says(layout(Codec::Plain, 16, 0).with_marks(), "plain 4x16, marked");
    }

    #[test]
    fn widths_without_a_word_are_refused() {
        assert!(Layout::new(Codec::Plain, 33, 0).is_none());
        assert!(Layout::new(Codec::SemiSorted, 34, 0).is_none());
        assert!(Layout::new(Codec::SemiSorted, 20, 14).is_none());
        assert!(Layout::new(Codec::Plain, 7, 0).is_none());
        assert!(Layout::new(Codec::Plain, 13, 0).is_none());
        assert!(Layout::new(Codec::Plain, 33, 31).is_none());
        assert!(Layout::new(Codec::Plain, 32, 33).is_none());
        for bits in [64, 255, u32::MAX] {
            assert!(Layout::new(Codec::Plain, bits, 0).is_none());
            assert!(Layout::new(Codec::SemiSorted, 13, bits).is_none());
        }
    }
}
