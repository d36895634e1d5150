//! From keys and error rate to buckets and bits.
//!
//! * **Error rate.** With N buckets and F fingerprints, a key has one of `U = N F / 2` equally
//!   likely entries. A filter with d different ones is wrong about an absent key with probability
//!   d/U, whatever their copies; after n keys that is `1 - exp(-n/U)` on average.
//! * **Slots.** Two choices of four-slot buckets first fail near a load of 0.975 (B. Fan et al.
//!   2014; our own figures are in docs/decisions/0001-addressing.md). A small filter is designed
//!   for 0.97, a fast one for 0.95, where inserts are cheaper.
//! * **Chance.** Small tables deviate more, so every segment gets slots beyond that; and where
//!   there are several segments, each gets its share of the keys only on average, so room is kept
//!   for five standard deviations.
//! * **Layout.** The narrowest fingerprint that keeps the rate when the filter is full to its
//!   capacity.

use core::ops::RangeInclusive;

use super::shape::{Prefer, Shape};
use crate::address::geometry::{CORES, HASH_BITS};
use crate::error::BuildError;
use crate::packing::{Codec, Layout, MAX_VALUE_BITS, SLOTS, WIDE_SLOT_BITS};
use crate::table::{FULL_LOAD, table_bytes};

/// Fingerprint widths of a small filter: any. With 33 bits a semi-sorted bucket fills 128.
const SMALL_WIDTHS: &[u32] = &[
    8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33,
];
/// Fingerprint widths of a fast filter: those whose buckets seldom cross a cache line.
const FAST_WIDTHS: &[u32] = &[8, 12, 16, 24, 32];
/// The fewest fraction bits of what may grow: with fewer, many entries would be left without bits
/// of their own.
const GROWABLE_FRACTION_BITS: u32 = 5;
/// Fingerprint widths of a maplet.
const MAPLET_WIDTHS: RangeInclusive<u32> = 8..=32;

/// A segment is at most this large, and more than half of it in filters of more than one.
const SEGMENT_BYTES: u64 = 2 << 20;
/// Slots beyond the design load that every segment gets: in a table of a few buckets, five keys
/// whose buckets are one and the same are not rare.
const SPARE_SLOTS: f64 = 160.0;
/// A segment with its share of keys must stay below this load, where inserts begin to fail.
const FAILING_LOAD: f64 = 0.9745;

/// The smallest shape that takes `capacity` distinct keys and errs at most at `rate` then.
pub(crate) fn choose(capacity: u64, rate: f64, prefer: Prefer) -> Result<Shape, BuildError> {
    let reached = |shape: &Shape| shape.rate_after(capacity);
    first_within(layouts(prefer), capacity, rate, prefer, reached)
}

/// The same for a filter that may grow: with enough bits that few entries have none left after some
/// doublings, and no more than can be marked. It errs at most at `rate` when it is full, for it
/// will be, and keeps the rate that it has then.
pub(crate) fn choose_growable(
    capacity: u64,
    rate: f64,
    prefer: Prefer,
) -> Result<Shape, BuildError> {
    let layouts = layouts(prefer).filter(|layout| has_bits_to_lose(layout) && layout.can_grow());
    let reached = |shape: &Shape| rate_at_design_load(shape, prefer);
    first_within(layouts, capacity, rate, prefer, reached)
}

/// Why a filter of this rate, and of a layout that [cannot grow](Layout::can_grow), does not: the
/// rate, and the smallest of one that can.
pub(crate) fn too_precise_to_grow(layout: Layout, capacity: u64, rate: f64) -> BuildError {
    let prefer = match layout.codec() {
        Codec::SemiSorted => Prefer::Small,
        Codec::Plain => Prefer::Fast,
    };
    match choose_growable(capacity, f64::MIN_POSITIVE, prefer) {
        Err(BuildError::TooPrecise { smallest, .. }) => BuildError::TooPrecise { rate, smallest },
        _ => BuildError::TooLarge { capacity },
    }
}

/// The smallest shape with marks that takes about `capacity` distinct keys, and errs at most at
/// `rate` after so many doublings.
pub(crate) fn choose_marked(
    layouts: impl Iterator<Item = Layout>,
    (capacity, doublings): (u64, f64),
    rate: f64,
    prefer: Prefer,
) -> Result<Shape, BuildError> {
    let layouts = layouts.map(Layout::with_marks).filter(has_bits_to_lose);
    let reached = |shape: &Shape| rate_when_full(shape.layout, doublings);
    first_within(layouts, capacity, rate, prefer, reached)
}

/// Bits that fingerprints get, besides the mark, when a table built without marks first grows. With
/// them, 20 doublings raise the rate by less than a third (docs/decisions/0008-growth.md).
const WIDENING: u32 = 6;

/// The layout of a table that has grown, for one built with `layout` and no marks; `None` where
/// slots have no room for the bits.
pub(crate) fn marked_layout(layout: Layout) -> Option<Layout> {
    let bits = layout.fingerprint_bits() + WIDENING + 1;
    let width = widths(layout.codec()).iter().copied().find(|&width| width >= bits)?;
    Layout::new(layout.codec(), width, layout.value_bits()).map(Layout::with_marks)
}

impl Layout {
    /// Whether a filter of this layout can grow: its slots have the bits that growth needs, or room
    /// for them. Those of the smallest rates have not.
    #[must_use]
    pub fn can_grow(self) -> bool {
        self.marks().is_some() || marked_layout(self).is_some()
    }
}

/// The false-positive rate of a table with marks that is full after so many doublings. The old
/// entries of each doubling have half the bits of the next: measured as 0.73 of the first rate for
/// each (docs/decisions/0008-growth.md).
pub(crate) fn rate_when_full(layout: Layout, doublings: f64) -> f64 {
    let fingerprints = (CORES << layout.fraction_bits()) as f64;
    let full = 2.0 * SLOTS as f64 * FULL_LOAD / fingerprints;
    full * (1.0 + 0.73 * doublings)
}

/// Whether fingerprints have so many bits that few entries are left without after some doublings.
fn has_bits_to_lose(layout: &Layout) -> bool {
    layout.fraction_bits() >= GROWABLE_FRACTION_BITS
}

/// The layouts of filters in the order in which they are tried, the narrowest first.
pub(crate) fn layouts(prefer: Prefer) -> impl Iterator<Item = Layout> {
    let codec = match prefer {
        Prefer::Small => Codec::SemiSorted,
        Prefer::Fast => Codec::Plain,
    };
    widths(codec).iter().filter_map(move |&width| Layout::new(codec, width, 0))
}

/// Fingerprint widths of filters, ascending.
fn widths(codec: Codec) -> &'static [u32] {
    match codec {
        Codec::SemiSorted => SMALL_WIDTHS,
        Codec::Plain => FAST_WIDTHS,
    }
}

/// The same as [`choose`] with buckets that fill an atomic word, of 32 bits or of 64.
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) fn choose_atomic(capacity: u64, rate: f64, prefer: Prefer) -> Result<Shape, BuildError> {
    let layouts = layouts(prefer).filter(|layout| [32, 64].contains(&layout.bucket_bits()));
    first_within(layouts, capacity, rate, prefer, |shape| shape.rate_after(capacity))
}

/// The shape of a maplet for `capacity` entries of distinct keys, with at most `rate` candidates
/// for an absent key then.
pub(crate) fn choose_maplet(
    layouts: impl Iterator<Item = Layout>,
    capacity: u64,
    rate: f64,
) -> Result<Shape, BuildError> {
    let reached = |shape: &Shape| shape.candidates_after(capacity);
    first_within(layouts, capacity, rate, Prefer::Fast, reached)
}

/// The layouts of maplets in the order in which they are tried: the narrowest first, but slots of
/// 64 bits take the widest fingerprint, since one costs no more than another.
pub(crate) fn maplet_layouts(value_bits: u32) -> Result<impl Iterator<Item = Layout>, BuildError> {
    if !(1..=MAX_VALUE_BITS).contains(&value_bits) {
        return Err(BuildError::ValueBits { value_bits });
    }
    let layouts =
        MAPLET_WIDTHS.filter_map(move |width| Layout::new(Codec::Plain, width, value_bits));
    let is_wide = |layout: &Layout| layout.slot_bits() >= WIDE_SLOT_BITS;
    let wide = layouts.clone().rev().filter(is_wide);
    Ok(layouts.filter(move |layout| !is_wide(layout)).chain(wide))
}

/// The shape for so many keys in the first layout in which it errs at most at `rate`, as `reached`
/// says.
fn first_within(
    layouts: impl Iterator<Item = Layout>,
    keys: u64,
    rate: f64,
    prefer: Prefer,
    reached: impl Fn(&Shape) -> f64,
) -> Result<Shape, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::Rate { rate });
    }
    let mut smallest = None;
    for shape in layouts.filter_map(|layout| shape(keys, layout, prefer)) {
        let reached = reached(&shape);
        if reached <= rate {
            return Ok(shape);
        }
        smallest = Some(smallest.map_or(reached, |least| reached.min(least)));
    }
    Err(smallest.map_or(BuildError::TooLarge { capacity: keys }, |smallest| {
        BuildError::TooPrecise { rate, smallest }
    }))
}

/// How often `first` keys must double to be `last`, rounded up to a whole number.
pub(crate) fn doublings(first: u64, last: u64) -> f64 {
    let times = last.div_ceil(first.max(1));
    f64::from(u64::BITS - (times.max(1) - 1).leading_zeros())
}

/// Expected false-positive rate when the table has its design load: in small ones that is well
/// beyond the capacity.
fn rate_at_design_load(shape: &Shape, prefer: Prefer) -> f64 {
    let slots = shape.buckets() as f64 * SLOTS as f64;
    shape.rate_after(round_up(slots * load_of(prefer)))
}

/// The load that a table is designed for.
fn load_of(prefer: Prefer) -> f64 {
    match prefer {
        Prefer::Small => 0.97,
        Prefer::Fast => 0.95,
    }
}

/// Buckets for `capacity` keys in this layout; `None` if a hash cannot address them.
fn shape(capacity: u64, layout: Layout, prefer: Prefer) -> Option<Shape> {
    let load = load_of(prefer);
    let whole = buckets_of_segment(capacity as f64, load, false);
    let bytes = whole.checked_mul(u64::from(layout.bucket_bits()))? / 8;
    let segment_bits = bytes.div_ceil(SEGMENT_BYTES).next_power_of_two().trailing_zeros();
    let segments = 1_u64 << segment_bits;
    let per_segment = if segments == 1 {
        whole
    } else {
        // An even number, so that a segment is a whole number of bytes.
        buckets_of_segment(capacity as f64 / segments as f64, load, true).next_multiple_of(2)
    };
    let segment_buckets = u32::try_from(per_segment).ok()?;
    let shape = Shape { layout, segment_bits, segment_buckets };
    table_bytes(layout, shape.buckets())?;
    fits_hash(segment_bits, segment_buckets, layout.fingerprint_bits()).then_some(shape)
}

/// Buckets for a segment that gets `keys` keys: exactly so many, or, `shared`, so many on average.
fn buckets_of_segment(keys: f64, load: f64, shared: bool) -> u64 {
    let deviation = square_root(keys);
    let slots = if shared {
        (keys / load).max((keys + 5.0 * deviation) / FAILING_LOAD)
    } else {
        keys / load + deviation + SPARE_SLOTS
    };
    round_up(slots / SLOTS as f64)
}

/// Whether bucket number and fingerprint fit into the usable bits of a hash.
pub(crate) fn fits_hash(segment_bits: u32, segment_buckets: u32, fingerprint_bits: u32) -> bool {
    let bucket_bits = segment_bits + u32::BITS - (segment_buckets - 1).leading_zeros();
    bucket_bits + fingerprint_bits <= HASH_BITS
}

/// The whole number that is not below `value`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of buckets")]
fn round_up(value: f64) -> u64 {
    let whole = value as u64;
    if (whole as f64) < value { whole + 1 } else { whole }
}

/// A square root without the standard library, in whole numbers: of the value rounded up, rounded
/// down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of no sign")]
pub(crate) fn square_root(value: f64) -> f64 {
    let whole = value as u128;
    whole.saturating_add(u128::from((whole as f64) < value)).isqrt() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That of a variance to a millionth of a key, of some hundred million keys: beyond 64 bits it
    /// was 0.
    #[test]
    fn a_square_root_is_one_at_any_size() {
        for root in [1.0, 3e3, 4.2e9, 4.3e9, 1e12, 3e18] {
            let found = square_root(root * root);
            assert!((found / root - 1.0).abs() < 1e-9, "{found}, not {root}");
        }
        assert_eq!([0.0, 0.1, 1.0, 8.9, 9.1].map(square_root), [0.0, 1.0, 1.0, 3.0, 3.0]);
    }
}
