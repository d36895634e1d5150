//! How full a growing table becomes before its next buckets are split.
//!
//! The load depends on how far the level has come: half-way, half of the buckets have twice the
//! keys of the others, and a search for room fails a little earlier. The loads are measured:
//! docs/decisions/0008-growth.md.

use super::{Addressing, LinearHashing, table_bytes};
use crate::address::geometry::Geometry;
use crate::mem::buffer;
use crate::packing::{Codec, Layout, SLOTS};

/// Entries by slots, in thousandths, at which the next chunk is split, for every tenth of a level:
/// where a search for room fails, less 18. Measured by growing on failed searches alone.
const DESIGN_LOADS: [u64; 11] = [953, 929, 912, 904, 903, 910, 920, 931, 942, 950, 954];

/// The load at the end of a level.
pub(crate) const FULL_LOAD: f64 = DESIGN_LOADS[10] as f64 / 1000.0;

/// So much lower is the load of tables whose packing is chosen for speed: inserts take a third less
/// time in 2 % more memory.
const SPEED_SLACK: u64 = 15;

/// The entries that a table holds once `split` of the buckets of a level are split.
pub(super) fn design_limit(codec: Codec, split: u64, level_buckets: u64) -> u64 {
    let position = split * 10_000 / level_buckets;
    let (first, rest) = (usize::try_from(position / 1000).unwrap_or(0), position % 1000);
    let [low, high] = [DESIGN_LOADS[first], DESIGN_LOADS[first + 1]];
    let slack = if codec == Codec::Plain { SPEED_SLACK } else { 0 };
    let load = low * (1000 - rest) + high * rest - slack * 1000;
    (level_buckets + split) * SLOTS as u64 * load / 1_000_000
}

/// The addresses of the smallest table of this layout that holds so many entries, grown from one
/// with the addresses of `base`; `None` where none can grow so far.
pub(super) fn addresses_for(
    base: &Geometry,
    layout: Layout,
    entries: u64,
) -> Option<LinearHashing> {
    let marked = layout.marks()?;
    let at = |level: u32, split: u64| LinearHashing::new(base.clone(), marked, level, split);
    let holds = |level: u32, split: u64| {
        entries <= design_limit(layout.codec(), split, base.buckets() << level)
    };
    let mut levels = (0..u32::BITS).take_while(|&level| at(level, 0).is_sound());
    let whole = levels.find(|&level| holds(level, 0))?;
    let Some(below) = whole.checked_sub(1) else { return Some(at(whole, 0)) };
    let buckets = base.buckets() << below;
    let mut chunks = (1..64).map(|chunk| chunk * (buckets / 64).max(1));
    let part = chunks.find(|&split| split < buckets && holds(below, split));
    Some(part.map_or_else(|| at(whole, 0), |split| at(below, split)))
}

/// Whether a table of this layout that holds so many entries, grown from one with the addresses of
/// `base`, fits into memory.
pub(crate) fn has_room_for(base: &Geometry, layout: Layout, entries: u64) -> bool {
    let addresses = addresses_for(base, layout, entries);
    let bytes = addresses.and_then(|addresses| table_bytes(layout, addresses.buckets()));
    bytes.is_some_and(buffer::can_be_had)
}
