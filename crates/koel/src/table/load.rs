//! How full a growing table becomes before its next buckets are split.
//!
//! The load depends on how far the level has come. Half-way, half of the buckets have twice the
//! keys of the others, and a search for room fails at a lower load. The loads are measured:
//! docs/decisions/0008-growth.md.

use super::{Addressing, LinearHashing, table_bytes};
use crate::address::geometry::Geometry;
use crate::packing::{Codec, Layout, SLOTS};

/// Thousandths of slots in use at which the next chunk is split, for every tenth of a level: the
/// load at which a search for room fails, less 18. Measured by growing on failed searches alone.
const DESIGN_LOADS: [u64; 11] = [953, 929, 912, 904, 903, 910, 920, 931, 942, 950, 954];

/// The load at the end of a level.
pub(crate) const FULL_LOAD: f64 = DESIGN_LOADS[10] as f64 / 1000.0;

/// Tables whose packing is chosen for speed have a load that is lower by this. Inserts take a third
/// less time, in 2 % more memory.
const SPEED_SLACK: u64 = 15;

/// The entries that a table with these addresses holds.
pub(super) fn design_limit(codec: Codec, addresses: &LinearHashing) -> u64 {
    let (split, level_buckets) = (addresses.split(), addresses.level_buckets());
    let position = split * 10_000 / level_buckets;
    let (first, rest) = (usize::try_from(position / 1000).unwrap_or(0), position % 1000);
    let [low, high] = [DESIGN_LOADS[first], DESIGN_LOADS[first + 1]];
    let slack = if codec == Codec::Plain { SPEED_SLACK } else { 0 };
    let load = low * (1000 - rest) + high * rest - slack * 1000;
    (level_buckets + split) * SLOTS as u64 * load / 1_000_000
}

/// The addresses of the smallest table of this layout that holds so many entries and has grown from
/// one with the addresses of `base`. `None` if none can grow that far.
pub(super) fn addresses_for(
    base: &Geometry,
    layout: Layout,
    entries: u64,
) -> Option<LinearHashing> {
    let marked = layout.marks()?;
    let at = |level: u32, split: u64| LinearHashing::new(base.clone(), marked, level, split);
    let holds = |level, split| entries <= design_limit(layout.codec(), &at(level, split));
    let mut levels = (0..u32::BITS).take_while(|&level| at(level, 0).is_sound());
    let whole = levels.find(|&level| holds(level, 0))?;
    let Some(below) = whole.checked_sub(1) else { return Some(at(whole, 0)) };
    let buckets = base.buckets() << below;
    let mut chunks = (1..64).map(|chunk| chunk * (buckets / 64).max(1));
    let part = chunks.find(|&split| split < buckets && holds(below, split));
    Some(part.map_or_else(|| at(whole, 0), |split| at(below, split)))
}

/// The bytes of the table of [`addresses_for`]. `None` if they cannot be addressed.
pub(crate) fn bytes_for(base: &Geometry, layout: Layout, entries: u64) -> Option<usize> {
    table_bytes(layout, addresses_for(base, layout, entries)?.buckets())
}
