//! Slots of 64 bits, as maplets of large values have them: four registers of one lane each.

use super::bits::{byte_index, read};
use super::coding::Plain;
use super::lanes::{Lanes, Opened};
use super::layout::Layout;
use super::{Packing, SLOTS};

/// Plain slots of 64 bits.
#[derive(Clone, Copy)]
pub(crate) struct Slots64 {
    lanes: Lanes,
}

impl Slots64 {
    pub(super) fn new(layout: Layout) -> Self {
        Self { lanes: Lanes::new::<Plain>(layout, 1) }
    }
}

impl Packing for Slots64 {
    type Coding = Plain;
    type Registers = [Opened<u64>; SLOTS];

    #[inline]
    fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    #[inline]
    fn registers(&self, bytes: &[u8], start: u64) -> [Opened<u64>; SLOTS] {
        let byte = byte_index(start / 8);
        let bytes = &bytes[byte..byte + 32];
        [0, 8, 16, 24].map(|at| (read(bytes, at), 0))
    }

    #[inline]
    fn write(&self, bytes: &mut [u8], start: u64, slots: [u64; SLOTS]) {
        let byte = byte_index(start / 8);
        let slots = slots.map(u64::to_le_bytes);
        bytes[byte..byte + 32].copy_from_slice(slots.as_flattened());
    }
}
