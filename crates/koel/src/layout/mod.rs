//! The slots of one bucket, as bits of a register.
//!
//! A bucket has four slots. A slot is a fingerprint, with value bits above it in a maplet; all zeros means empty. Two codecs:
//!
//! ```text
//!     plain          | slot 3 | slot 2 | slot 1 | slot 0 |                   4 * s bits
//!     semi-sorted    | code | high 3 | high 2 | high 1 | high 0 |            4 * s - 4 bits
//!                      12        each the slot without its low 4 bits
//! ```
//!
//! Buckets follow one another without gaps, so a semi-sorted bucket may start in the middle of a byte, always on a multiple of 4 bits. Widths are
//! run-time numbers: one piece of code serves every layout, and a caller that knows its layout at compile time gets the
//! constants folded in.
//!
//! Tests for "any slot equal to x" work on all four lanes of the word at once (SWAR), without decoding.

mod sorted;
mod word;

use core::fmt;

use crate::geometry::CORE_BITS;
pub(crate) use word::Word;

/// Slots of a bucket.
pub(crate) const SLOTS: usize = 4;
/// The widest bucket in bits.
pub(crate) const MAX_BUCKET_BITS: u32 = 128;

/// How four slots are packed into a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Each slot as it is: fastest.
    Plain,
    /// The low four bits of the slots sorted and stored as one 12-bit code: one bit per slot less.
    SemiSorted,
}

/// The packing of a filter's buckets: codec and widths.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    codec: Codec,
    fingerprint_bits: u32,
    value_bits: u32,
}

impl Layout {
    /// The layout of these widths, or `None` where a bucket would not fit into a word or a fingerprint would hold too little.
    pub(crate) const fn new(codec: Codec, fingerprint_bits: u32, value_bits: u32) -> Option<Self> {
        if fingerprint_bits < CORE_BITS + 2 || fingerprint_bits > 64 || value_bits > 64 {
            return None;
        }
        let layout = Self { codec, fingerprint_bits, value_bits };
        if layout.bucket_bits() > MAX_BUCKET_BITS { None } else { Some(layout) }
    }

    /// Calls `work` with this layout, for the common ones as a constant: where `work` is inlined, their widths are folded into code of their own.
    #[inline(always)]
    pub(crate) fn specialise<R>(self, work: impl FnOnce(Self) -> R) -> R {
        match self {
            Self::SORTED_8 => work(Self::SORTED_8),
            Self::SORTED_9 => work(Self::SORTED_9),
            Self::SORTED_10 => work(Self::SORTED_10),
            Self::SORTED_11 => work(Self::SORTED_11),
            Self::SORTED_12 => work(Self::SORTED_12),
            Self::SORTED_13 => work(Self::SORTED_13),
            Self::SORTED_14 => work(Self::SORTED_14),
            Self::SORTED_15 => work(Self::SORTED_15),
            Self::SORTED_16 => work(Self::SORTED_16),
            Self::SORTED_17 => work(Self::SORTED_17),
            Self::SORTED_18 => work(Self::SORTED_18),
            Self::PLAIN_8 => work(Self::PLAIN_8),
            Self::PLAIN_12 => work(Self::PLAIN_12),
            Self::PLAIN_16 => work(Self::PLAIN_16),
            other => work(other),
        }
    }

    const SORTED_8: Self = Self::of_filter(Codec::SemiSorted, 8);
    const SORTED_9: Self = Self::of_filter(Codec::SemiSorted, 9);
    const SORTED_10: Self = Self::of_filter(Codec::SemiSorted, 10);
    const SORTED_11: Self = Self::of_filter(Codec::SemiSorted, 11);
    const SORTED_12: Self = Self::of_filter(Codec::SemiSorted, 12);
    const SORTED_13: Self = Self::of_filter(Codec::SemiSorted, 13);
    const SORTED_14: Self = Self::of_filter(Codec::SemiSorted, 14);
    const SORTED_15: Self = Self::of_filter(Codec::SemiSorted, 15);
    const SORTED_16: Self = Self::of_filter(Codec::SemiSorted, 16);
    const SORTED_17: Self = Self::of_filter(Codec::SemiSorted, 17);
    const SORTED_18: Self = Self::of_filter(Codec::SemiSorted, 18);
    const PLAIN_8: Self = Self::of_filter(Codec::Plain, 8);
    const PLAIN_12: Self = Self::of_filter(Codec::Plain, 12);
    const PLAIN_16: Self = Self::of_filter(Codec::Plain, 16);

    const fn of_filter(codec: Codec, fingerprint_bits: u32) -> Self {
        Self { codec, fingerprint_bits, value_bits: 0 }
    }

    /// How slots are packed.
    #[must_use]
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub const fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Bits of the value beside each fingerprint; 0 in a filter.
    #[must_use]
    pub const fn value_bits(&self) -> u32 {
        self.value_bits
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
        self.fingerprint_bits + self.value_bits
    }

    /// The fingerprint of a slot.
    #[inline]
    pub(crate) const fn fingerprint_of(&self, slot: u64) -> u64 {
        slot & (u64::MAX >> (u64::BITS - self.fingerprint_bits))
    }

    /// Whether any slot of `word` has this fingerprint. A semi-sorted word is decoded only where the plain bits of a slot match, or, `eager`,
    /// always: more work, and no branch that depends on the data.
    #[inline(always)]
    pub(crate) fn has<W: Word>(&self, word: W, fingerprint: u64, eager: bool) -> bool {
        match self.codec {
            Codec::Plain => {
                word::equal_lanes(word, fingerprint, self.slot_bits(), self.fingerprint_bits)
                    != W::ZERO
            }
            Codec::SemiSorted => {
                let lane = self.slot_bits() - sorted::LOW_BITS;
                let plain = self.fingerprint_bits - sorted::LOW_BITS;
                let hits = word::equal_lanes(word, fingerprint >> sorted::LOW_BITS, lane, plain);
                (eager || hits != W::ZERO) && sorted::low_bits_match(word, hits, lane, fingerprint)
            }
        }
    }

    /// The four slots of a bucket.
    #[inline(always)]
    pub(crate) fn decode(&self, word: u128) -> Bucket {
        Bucket(match self.codec {
            Codec::Plain => word::lanes(word, self.slot_bits()),
            Codec::SemiSorted => sorted::decode(word, self.slot_bits()),
        })
    }

    /// The word of a bucket. A semi-sorted word depends on which slots there are, not on their order.
    #[inline(always)]
    pub(crate) fn encode(&self, bucket: Bucket) -> u128 {
        match self.codec {
            Codec::Plain => word::join(bucket.0, self.slot_bits()),
            Codec::SemiSorted => sorted::encode(bucket.0, self.slot_bits()),
        }
    }

    /// Whether `word` is what [`encode`](Self::encode) would make of its slots.
    pub(crate) fn is_canonical(&self, word: u128) -> bool {
        self.encode(self.decode(word)) == word
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

    /// How many slots are empty.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.copies(0)
    }

    /// Writes `new` over one slot that holds `old`; false if there is none.
    #[inline]
    pub(crate) fn replace(&mut self, old: u64, new: u64) -> bool {
        match self.0.iter_mut().find(|held| **held == old) {
            Some(held) => {
                *held = new;
                true
            }
            None => false,
        }
    }

    /// The slots in use.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u64> {
        self.0.into_iter().filter(|&slot| slot != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every layout that a filter may have, and some with values.
    fn layouts() -> impl Iterator<Item = Layout> {
        let codecs = [Codec::Plain, Codec::SemiSorted];
        let widths = move |codec| {
            (8..=33).flat_map(move |bits| [0, 1, 5].map(|value| Layout::new(codec, bits, value)))
        };
        codecs.into_iter().flat_map(widths).flatten()
    }

    fn noise(seed: &mut u64) -> u64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed ^ (*seed >> 29)
    }

    #[test]
    fn a_word_has_exactly_the_fingerprints_of_its_slots() {
        let mut seed = 1;
        for layout in layouts() {
            let slot_mask = u64::MAX >> (u64::BITS - layout.slot_bits());
            for _ in 0..2000 {
                // Few distinct values, so that equal and nearly equal slots are common.
                let mut slot = || noise(&mut seed) & slot_mask & !(noise(&mut seed) & !0x13);
                let bucket = Bucket([slot(), slot(), slot(), 0]);
                let word = layout.encode(bucket);
                let decoded = layout.decode(word);
                for probe in bucket.0.into_iter().chain([slot(), 0, slot_mask]) {
                    let fingerprint = layout.fingerprint_of(probe);
                    let held = bucket.0.iter().any(|&s| layout.fingerprint_of(s) == fingerprint);
                    assert_eq!(
                        layout.has(word, fingerprint, false),
                        held,
                        "{layout} {bucket:x?} {probe:x}"
                    );
                    assert_eq!(decoded.copies(probe), bucket.copies(probe));
                    if layout.bucket_bits() <= 64 {
                        assert_eq!(layout.has(u64::truncate(word), fingerprint, true), held);
                    }
                }
                assert!(layout.is_canonical(word));
            }
        }
    }

    #[test]
    fn bits_of_the_next_bucket_do_not_matter() {
        let mut seed = 2;
        for layout in layouts().filter(|layout| layout.bucket_bits() < MAX_BUCKET_BITS) {
            let word = layout.encode(Bucket([1 << 6, 77, 0, 0].map(|slot| slot & 0xff)));
            let next = u128::from(noise(&mut seed)) << layout.bucket_bits();
            for probe in [1 << 6, 77, 78, 0, 255] {
                assert_eq!(
                    layout.has(word, probe, true),
                    layout.has(word | next, probe, false),
                    "{layout}"
                );
            }
        }
    }

    #[test]
    fn an_unwritten_code_is_not_canonical() {
        let layout = Layout::new(Codec::SemiSorted, 13, 0).unwrap();
        assert!(layout.is_canonical(3875 << 36));
        assert!(!layout.is_canonical(3876 << 36));
        assert!(!layout.is_canonical(4095 << 36));
    }

    #[test]
    fn widths_without_a_word_are_refused() {
        assert!(Layout::new(Codec::Plain, 33, 0).is_none());
        assert!(Layout::new(Codec::SemiSorted, 34, 0).is_none());
        assert!(Layout::new(Codec::SemiSorted, 20, 14).is_none());
        assert!(Layout::new(Codec::Plain, 7, 0).is_none());
    }
}
