//! How full a growing table becomes before its next buckets are split, and how far it can grow.
//!
//! Half-way through a level, half of the buckets have twice the keys of the others, and a search
//! for room fails at a load of 0.92. Inserts become slow well below that, so the load is lower and
//! the same all the way. The loads are measured: docs/decisions/0019-growth-loads.md.

use super::LinearHashing;
use crate::address::geometry::Geometry;
use crate::packing::{Codec, Layout, SLOTS};

/// The most buckets that one insert widens, in tens of microseconds. Not fewer, since lookups are
/// slow until the last bucket is wide, and inserts search long in a table that stays full.
pub(super) const MAX_WIDENED: u64 = 1024;
/// The most buckets that one step splits.
const MAX_CHUNK: u64 = 4096;

/// How many buckets a step splits in a level of so many.
pub(super) fn step_of(level: u64) -> u64 {
    (level / 64).clamp(1, MAX_CHUNK)
}

/// The most buckets of a table after the steps of one more insert: one because a search found no
/// room, and one for the load, which may be twice as large in the next level.
pub(super) fn buckets_after_steps(level: u64, buckets: u64) -> u64 {
    buckets + 3 * step_of(level)
}

/// Thousandths of slots in use at which the next chunk is split, where packing is chosen for size.
const SMALL: u64 = 870;
/// The same where packing is chosen for speed.
const FAST: u64 = 800;
/// The same for slots with values, which cost more memory than other slots: the index of the log
/// store takes 9 bytes per key.
const VALUES: u64 = 900;

/// Thousandths of slots in use at which the next chunk is split.
fn thousandths(layout: Layout) -> u64 {
    #[cfg(test)]
    if let tried @ 1.. = tried_load::get() {
        return tried;
    }
    match layout.codec() {
        Codec::SemiSorted => SMALL,
        Codec::Plain if layout.value_bits() > 0 => VALUES,
        Codec::Plain => FAST,
    }
}

/// The load of a growing table of this layout.
pub(crate) fn design_load(layout: Layout) -> f64 {
    thousandths(layout) as f64 / 1000.0
}

/// The entries that a table with so many buckets holds.
pub(super) fn design_limit(layout: Layout, buckets: u64) -> u64 {
    buckets * SLOTS as u64 * thousandths(layout) / 1000
}

/// The addresses of the smallest table of this layout that holds so many entries and has grown from
/// one with the addresses of `base`. `None` if none can grow that far.
pub(super) fn addresses_for(
    base: &Geometry,
    layout: Layout,
    entries: u64,
) -> Option<LinearHashing> {
    let marked = layout.marks()?;
    let per_bucket = u128::from(SLOTS as u64 * thousandths(layout));
    let needed = (u128::from(entries) * 1000).div_ceil(per_bucket);
    let buckets = u64::from(u32::try_from(needed).ok()?).max(base.buckets());
    let whole = base.buckets() << (buckets / base.buckets()).ilog2();
    let split = (buckets - whole).next_multiple_of((whole / 64).max(1));
    LinearHashing::grown(base, marked, whole + split.min(whole))
}

/// The buckets of the table of [`addresses_for`].
pub(crate) fn buckets_for(base: &Geometry, layout: Layout, entries: u64) -> Option<u64> {
    Some(addresses_for(base, layout, entries)?.buckets())
}

/// The most entries that a table of this layout can grow to from one with the addresses of `base`,
/// where memory allows. `None` if it cannot grow.
pub(crate) fn most_entries(base: &Geometry, layout: Layout) -> Option<u64> {
    let marked = layout.marks()?;
    let tables = (0..u32::BITS).map(|level| LinearHashing::new(base.clone(), marked, level, 0));
    // The first of these tables is the one that grows.
    let largest = tables.take_while(LinearHashing::is_sound).skip(1).last()?;
    Some(design_limit(layout, largest.buckets()))
}

/// A load that a measurement tries in place of the design load of its thread; 0 for none.
#[cfg(test)]
pub(crate) mod tried_load {
    extern crate std;

    use core::cell::Cell;

    std::thread_local!(static TRIED: Cell<u64> = const { Cell::new(0) });

    pub(super) fn get() -> u64 {
        TRIED.get()
    }

    pub(crate) fn set(thousandths: u64) {
        TRIED.set(thousandths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bases of one segment and of several, and layouts of every load.
    fn tables() -> impl Iterator<Item = (Geometry, Layout)> {
        let layouts = [(Codec::SemiSorted, 18, 0), (Codec::Plain, 24, 0), (Codec::Plain, 18, 14)];
        let layouts = layouts.map(|(codec, fingerprint_bits, value_bits)| {
            Layout::new(codec, fingerprint_bits, value_bits).unwrap().with_marks()
        });
        let bases = [(0, 1), (0, 300), (0, 77_777), (4, 1000)];
        bases.into_iter().flat_map(move |(segment_bits, buckets)| {
            layouts.map(|layout| (Geometry::new(segment_bits, buckets, 17), layout))
        })
    }

    #[test]
    fn the_table_for_so_many_entries_is_the_first_chunk_boundary_that_holds_them() {
        for (base, layout) in tables() {
            let more = |entries: &u64| Some(entries + entries / 10 + 1);
            for entries in core::iter::successors(Some(base.buckets()), more).take(200) {
                let Some(found) = addresses_for(&base, layout, entries) else { continue };
                assert!(entries <= design_limit(layout, found.buckets()));
                let (level, split) = match (found.level(), found.split()) {
                    (0, 0) => continue,
                    (level, 0) => (level - 1, base.buckets() << (level - 1)),
                    (level, split) => (level, split),
                };
                let whole = base.buckets() << level;
                let before = whole + (split - 1) / (whole / 64).max(1) * (whole / 64).max(1);
                assert!(entries > design_limit(layout, before), "{entries} {level} {split}");
            }
        }
    }

    #[test]
    fn a_table_can_grow_to_the_limit_of_growth_and_not_beyond() {
        for (base, layout) in tables() {
            let most = most_entries(&base, layout).unwrap();
            let table = addresses_for(&base, layout, most).unwrap();
            assert!(table.is_sound() && !table.can_grow() && table.split() == 0);
            for more in [most + 4, 2 * most, u64::MAX] {
                assert!(addresses_for(&base, layout, more).is_none());
            }
        }
        let wide = Layout::new(Codec::SemiSorted, 18, 0).unwrap().with_marks();
        assert_eq!(most_entries(&Geometry::new(10, 3 << 20, 17), wide), None);
    }
}
