//! Marked fingerprints against a key, in all lanes at once: a lane matches when the core is the key's and the bits that the lane knows are.
//!
//! ```text
//!     | value | core, high 2 bits | 0 ... 0 1 | known bits | core, low 4 bits, of a plain slot |
//!                     ^ guard     '-------- field ---------'
//! ```
//!
//! Of the field and the key's, exclusive-or gives x. The lowest bit of x tells how many bits agree, and the highest one of the field how many are known. With
//! `x ^ (x - 1)`, all ones up to the lowest bit of x, a match is one comparison: `x ^ (x - 1) >= field`. The guard is a bit above the field that
//! x always has, so that nothing is borrowed from the next lane; the comparison subtracts from the highest bit of the core, and so leaves it there where the lane matches. Where
//! cores differ, a sum sets the same bit of another word.

use super::super::Marked;
use super::{Lanes, Pattern, Register, Word};

/// The masks of marked fingerprints, each for every lane.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prefixes {
    /// The field: known bits, mark, and zeros.
    field: u128,
    /// The lowest bit of the field.
    unit: u128,
    /// The bit above the field.
    guard: u128,
    /// The highest bit of the fingerprint, which is the core's, and all bits of the lane below it.
    top: u128,
    below: u128,
    /// The core without its highest bit: what a match has in common with the key besides, whatever it knows.
    core: u128,
    /// How far the highest bit of the lane is above that of the fingerprint.
    above: u32,
}

impl Prefixes {
    /// `cut` bits of each fingerprint are not in its lane.
    pub(super) fn new(
        marked: Marked,
        ones: u128,
        (cut, fingerprint_bits): (u32, u32),
        width: u32,
    ) -> Self {
        let [top, guard, unit] = marked.edges().map(|bit| ones << (bit - cut));
        let (field, below) = (guard - unit, top - ones);
        Self {
            field,
            unit,
            guard,
            top,
            below,
            core: below & !field,
            above: width - (fingerprint_bits - cut),
        }
    }
}

impl Lanes {
    /// The highest bit of the fingerprint of every lane that matches the key of `pattern`, which is the longest fingerprint of a key.
    #[inline(always)]
    fn like<R: Register, const SORTED: bool>(
        &self,
        (word, nibbles): (R, R),
        pattern: Pattern<R>,
    ) -> R {
        let prefixes = &self.prefixes;
        let (field, top) = (R::narrow(prefixes.field), R::narrow(prefixes.top));
        let below = R::narrow(prefixes.below);
        let x = word ^ pattern.lanes;
        let core = x & R::narrow(prefixes.core);
        // As in `nonzero`, but at the highest bit of the fingerprint: it is set where the cores differ.
        let strange = if SORTED {
            let nibbles = self.spread(nibbles) ^ pattern.nibbles;
            (((core | nibbles) & below) + below) | nibbles | x
        } else {
            (core + below) | x
        };
        let x = (x & field) | R::narrow(prefixes.guard);
        let agreed = x ^ (x - R::narrow(prefixes.unit));
        ((agreed | top) - (word & field)) & !strange & top
    }

    /// Whether a lane of the first word matches the first key's fingerprint, or one of the second word the second's, each word beside its nibbles. No branch on the data.
    #[inline(always)]
    pub(crate) fn pair_matches<const SORTED: bool>(
        &self,
        [one, other]: [(u64, u64); 2],
        fingerprints: [u64; 2],
    ) -> bool {
        let patterns = fingerprints.map(|fingerprint| self.pattern::<u64, SORTED>(fingerprint));
        // Both fingerprints are of one core, and its low half is the nibble.
        let pattern = Pattern {
            lanes: u64::pair(patterns.map(|pattern| pattern.lanes)),
            nibbles: u64::pair([patterns[0].nibbles; 2]),
        };
        let words = (u64::pair([one.0, other.0]), u64::pair([one.1, other.1]));
        let [one, other] = u64::apart(self.like::<_, SORTED>(words, pattern));
        (one | other) != 0
    }

    /// The top bit of every lane that matches the key whose longest fingerprint is given.
    #[inline(always)]
    pub(crate) fn matching<W: Word, const SORTED: bool>(&self, word: W, fingerprint: u64) -> W {
        let nibbles = W::from(self.nibbles::<W, SORTED>(word));
        let pattern = self.pattern::<W, SORTED>(fingerprint);
        self.like::<W, SORTED>((word, nibbles), pattern) << self.prefixes.above
    }

    /// Whether a lane of either word, each beside its nibbles, matches its fingerprint: as 1 or 0, by arithmetic alone, for vector code.
    #[inline(always)]
    pub(crate) fn matching_byte<const SORTED: bool>(
        &self,
        words: [(u64, u64); 2],
        fingerprints: [u64; 2],
    ) -> u8 {
        let like = |i: usize| {
            self.like::<u64, SORTED>(words[i], self.pattern::<u64, SORTED>(fingerprints[i]))
        };
        let matches = like(0) | like(1);
        ((matches | matches.wrapping_neg()) >> 63) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Bucket, Codec, Form, Layout, MAX_BUCKET_BITS, Quad};
    use super::*;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64 as hash;

    /// What a match is, one bit after the other.
    fn matches(marked: Marked, stored: u64, core: u64, string: u64) -> bool {
        let (bits, known) = marked.known(stored);
        stored != 0
            && marked.core(stored) == core
            && (0..known).all(|i| (bits ^ string) >> i & 1 == 0)
    }

    fn check<W: Word, const SORTED: bool>(
        layout: Layout,
        word: W,
        slots: [u64; 4],
        key: (u64, u64),
    ) {
        let (marked, lanes) = (layout.marks().unwrap(), Lanes::new(layout));
        let longest = marked.longest(key.0, key.1);
        let expected = slots.map(|slot| matches(marked, layout.fingerprint_of(slot), key.0, key.1));
        let found = lanes.matching::<W, SORTED>(word, longest);
        let count = expected.iter().filter(|&&matches| matches).count() as u64;
        assert_eq!(lanes.count(found), count, "{layout} {slots:x?} {key:x?}");
        if found != W::ZERO {
            let first = expected.iter().position(|&matches| matches).unwrap();
            let taken = word ^ lanes.change::<W, SORTED>(word, found, slots[first], 0);
            let left = lanes.count(lanes.matching::<W, SORTED>(taken, longest));
            assert_eq!(left, count - 1);
        }
        if W::BITS == 64 {
            let word = u64::narrow(word.wide());
            for other in [0, word] {
                let pair = lanes.opened::<SORTED>([word, other]);
                assert_eq!(lanes.pair_matches::<SORTED>(pair, [longest; 2]), count > 0);
                let byte = lanes.matching_byte::<SORTED>(pair, [longest; 2]);
                assert_eq!(byte, u8::from(count > 0));
            }
        }
        if W::BITS == 128 {
            let part = Lanes::of_part(layout);
            for pair in lanes.parts::<SORTED>(&part, word.wide()) {
                assert_eq!(part.pair_matches::<SORTED>(pair, [longest; 2]), count > 0);
                let byte = part.matching_byte::<SORTED>(pair, [longest; 2]);
                assert_eq!(byte, u8::from(count > 0));
            }
        }
    }

    fn layouts() -> Vec<Layout> {
        let widths = |codec| (8..=40).flat_map(move |bits| [0, 1, 5, 13].map(|v| (codec, bits, v)));
        let all = [Codec::Plain, Codec::SemiSorted].into_iter().flat_map(widths);
        all.filter_map(|(codec, bits, v)| Layout::new(codec, bits, v))
            .map(Layout::with_marks)
            .collect()
    }

    #[test]
    fn a_lane_matches_when_core_and_known_bits_are_the_keys() {
        for layout in layouts() {
            let marked = layout.marks().unwrap();
            for i in 0..400 {
                // Few cores and strings that often agree in their first bits.
                let key = |n: u64| (1 + hash(n) % 3 * 20, hash(n + 1) | 0x2b & hash(n + 2));
                let slot = |n: u64| {
                    let (core, string) = key(n);
                    let known = (hash(n + 3) % u64::from(marked.most() + 1)).min(hash(n + 4) % 41);
                    let fingerprint =
                        marked.fingerprint(core, string, u32::try_from(known).unwrap());
                    let value = hash(n + 5) & !(u64::MAX << layout.value_bits());
                    if hash(n + 6).is_multiple_of(5) { 0 } else { layout.slot(fingerprint, value) }
                };
                let bucket = Bucket([0, 10, 20, 30].map(|n| slot(100 * i + n)));
                let probe = key(100 * i + 10 * (i % 5));
                if layout.bucket_bits() <= MAX_BUCKET_BITS {
                    let word = layout.encode(bucket);
                    let slots = layout.decode(word).0;
                    match Lanes::new(layout).form() {
                        Form::Plain => check::<u64, false>(layout, u64::narrow(word), slots, probe),
                        Form::Sorted => check::<u64, true>(layout, u64::narrow(word), slots, probe),
                        Form::WidePlain => check::<u128, false>(layout, word, slots, probe),
                        Form::WideSorted => check::<u128, true>(layout, word, slots, probe),
                        Form::Quad | Form::Apart => panic!("no such bucket fits a register"),
                    }
                } else {
                    let bytes: Vec<u8> = bucket.0.into_iter().flat_map(u64::to_le_bytes).collect();
                    check::<Quad, false>(layout, Quad::read(&bytes, 0), bucket.0, probe);
                }
            }
        }
    }
}
