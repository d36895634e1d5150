//! Slots of 64 bits, as maplets of large values have them: four numbers side by side, one lane
//! each.

use wide::u64x2;

use super::bytes::{byte_index, read};
use super::slot_coding::Plain;
use super::swar::{Lanes, Opened, Pattern, Register};
use super::{Layout, Matching, Packing, SLOTS};
use crate::address::geometry::low_half;

/// Plain slots of 64 bits.
#[derive(Clone, Copy)]
pub(crate) struct Slots64 {
    /// The masks of one slot.
    lanes: Lanes,
}

impl Slots64 {
    pub(super) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::unpacked(layout) }
    }

    /// What `test` gives for the first two slots and for the last two, compared with the key.
    #[inline]
    fn pairs([a, b, c, d]: [u64; SLOTS], test: impl Fn(Opened<u64x2>) -> u64x2) -> [u64x2; 2] {
        [[a, b], [c, d]].map(|slots| test((u64x2::new(slots), u64x2::of(0))))
    }

    #[inline]
    fn pattern(&self, key: u64) -> Pattern<u64x2> {
        Pattern::pair([self.lanes.pattern::<Plain>(key); 2])
    }

    /// Whether any of these slots matches the key.
    #[inline(always)]
    pub(super) fn any<M: Matching>(&self, slots: [u64; SLOTS], key: u64) -> bool {
        let pattern = self.pattern(key);
        let any = |word| M::any::<u64x2, Plain>(&self.lanes, word, pattern);
        let [lower, upper] = Self::pairs(slots, any);
        let [one, other] = (lower | upper).to_array();
        (one | other) != 0
    }

    /// Bit i: whether slot i matches the key.
    #[inline(always)]
    pub(super) fn bits<M: Matching>(&self, slots: [u64; SLOTS], key: u64) -> u32 {
        let pattern = self.pattern(key);
        let tops = |word| M::tops::<u64x2, Plain>(&self.lanes, word, pattern);
        let [lower, upper] = Self::pairs(slots, tops);
        let bits = |tops: u64x2| {
            let [one, other] = tops.to_array();
            low_half(one >> 63 | other >> 63 << 1)
        };
        bits(lower) | bits(upper) << 2
    }
}

impl Packing for Slots64 {
    #[inline]
    fn slots(&self, bytes: &[u8], start: u64) -> [u64; SLOTS] {
        let byte = byte_index(start / 8);
        let bytes = &bytes[byte..byte + 32];
        [read(bytes, 0), read(bytes, 8), read(bytes, 16), read(bytes, 24)]
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let byte = byte_index(start / 8);
        let slots = slots.map(u64::to_le_bytes);
        bytes[byte..byte + 32].copy_from_slice(slots.as_flattened());
    }

    #[inline]
    fn has_room(&self, bytes: &[u8], start: u64) -> bool {
        self.slots(bytes, start).contains(&0)
    }

    #[inline]
    fn matches<M: Matching>(&self, bytes: &[u8], starts: [u64; 2], keys: [u64; 2]) -> bool {
        let [home, other] = starts.map(|start| self.slots(bytes, start));
        self.any::<M>(home, keys[0]) | self.any::<M>(other, keys[1])
    }

    #[inline]
    fn matching<M: Matching>(&self, bytes: &[u8], start: u64, key: u64) -> u32 {
        self.bits::<M>(self.slots(bytes, start), key)
    }
}
