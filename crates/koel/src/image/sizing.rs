//! From capacity and false-positive rate to buckets and bits.
//!
//! * **False-positive rate.** With N buckets and F fingerprints, a key has one of `U = N F / 2`
//!   equally likely entries. A filter with d different entries reports an absent key with
//!   probability d/U, however many copies they have. After n keys that is `1 - exp(-n/U)` on
//!   average.
//! * **Slots.** Two choices of four-slot buckets first fail near a load of 0.975 (B. Fan et al.
//!   2014; our own figures are in docs/decisions/0001-addressing.md). A small filter is designed
//!   for 0.97, a fast one for 0.95, where inserts are cheaper. A table that grows from the start
//!   has the load of growth (table/load.rs).
//! * **Chance.** Small tables deviate more, so every segment gets spare slots. Where there are
//!   several segments, each gets its share of the keys only on average, so they get room for five
//!   standard deviations more.
//! * **Layout.** The narrowest fingerprint that keeps the rate when the filter holds its capacity.

use core::ops::RangeInclusive;

use super::shape::{Prefer, Shape};
use crate::address::geometry::{CORES, HASH_BITS};
use crate::error::BuildError;
use crate::packing::{Codec, Layout, MAX_VALUE_BITS, SLOTS, WIDE_SLOT_BITS};
use crate::table::{design_load, most_entries, table_bytes};

/// Fingerprint widths of a small filter. With 33 bits, a semi-sorted bucket fills 128 bits.
const SMALL_WIDTHS: &[u32] = &[
    8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33,
];
/// Fingerprint widths of a fast filter. Their buckets seldom cross a cache line.
const FAST_WIDTHS: &[u32] = &[8, 12, 16, 24, 32];
/// The fewest fraction bits of a table that grows. With fewer, growth would use up all bits of many
/// entries.
const GROWABLE_FRACTION_BITS: u32 = 5;
/// Fingerprint widths of a maplet.
const MAPLET_WIDTHS: RangeInclusive<u32> = 8..=32;

/// The largest segment. If there are several, each has more than half of this size.
const SEGMENT_BYTES: u64 = 2 << 20;
/// Slots that every segment gets beyond the design load. In a table of a few buckets, five keys
/// often share one bucket as their only one.
const SPARE_SLOTS: f64 = 160.0;
/// The load at which inserts begin to fail. A segment with its share of keys must stay below it.
const FAILING_LOAD: f64 = 0.9745;

/// A filter that is full beyond its capacity has at most so many times the rate that was asked for.
/// A small table has many more slots than its capacity, and takes keys as long as there are some.
const RATE_BEYOND: f64 = 1.35;

/// The smallest shape for `capacity` distinct keys with at most this false-positive rate.
pub(crate) fn choose(capacity: u64, rate: f64, prefer: Prefer) -> Result<Shape, BuildError> {
    let reached = |shape: &Shape, keys| shape.rate_after(most_at_rate(shape, keys));
    first_within(layouts(prefer), capacity, rate, reached)
}

/// The keys with which a table of one size must keep its rate: its capacity, or in a small table as
/// many as keep [`RATE_BEYOND`] times the rate with an entry in each slot.
fn most_at_rate(shape: &Shape, capacity: u64) -> u64 {
    let slots = shape.buckets() as f64 * SLOTS as f64;
    capacity.max(round_up(slots / RATE_BEYOND))
}

/// [`choose`] for a filter that may grow. Fingerprints are wide enough that few entries run out of
/// bits after some doublings, and leave room for the mark. The filter keeps the rate when it is
/// full beyond its capacity, because it fills that far before it grows.
pub(crate) fn choose_growable(
    capacity: u64,
    rate: f64,
    prefer: Prefer,
) -> Result<Shape, BuildError> {
    let layouts = layouts(prefer).filter(|layout| has_bits_to_lose(layout) && layout.can_grow());
    first_within(layouts, capacity, rate, |shape, _| rate_at_design_load(shape))?
        .that_grows_to(capacity)
}

/// The error for a filter whose layout [cannot grow](Layout::can_grow): its rate, and the smallest
/// rate of a filter that can.
pub(crate) fn too_precise_to_grow(layout: Layout, capacity: u64, rate: f64) -> BuildError {
    let prefer = match layout.codec() {
        Codec::SemiSorted => Prefer::Small,
        Codec::Plain => Prefer::Fast,
    };
    match choose_growable(capacity, f64::MIN_POSITIVE, prefer) {
        Err(BuildError::TooPrecise { smallest, .. }) => BuildError::TooPrecise { rate, smallest },
        Err(error) => error,
        Ok(_) => BuildError::TooPrecise { rate, smallest: rate },
    }
}

/// The smallest shape with marks for `first` distinct keys that keeps the rate until it has grown
/// to `capacity` keys.
pub(crate) fn choose_marked(
    layouts: impl Iterator<Item = Layout> + Clone,
    first: u64,
    capacity: u64,
    rate: f64,
) -> Result<Shape, BuildError> {
    let layouts = layouts.map(Layout::with_marks).filter(has_bits_to_lose);
    let reached = |shape: &Shape, first| rate_when_full(shape.layout, first, capacity);
    first_within(layouts, first, rate, reached)?.that_grows_to(capacity)
}

/// Bits that fingerprints get, besides the mark, when a table built without marks first grows.
/// Then 20 doublings raise the rate by less than a third (docs/decisions/0008-growth.md).
const WIDENING: u32 = 6;

/// The layout that a table built with `layout` and no marks has once it has grown. `None` where
/// slots have no room for the bits.
pub(crate) fn marked_layout(layout: Layout) -> Option<Layout> {
    let bits = layout.fingerprint_bits() + WIDENING + 1;
    let width = widths(layout.codec()).iter().copied().find(|&width| width >= bits)?;
    Layout::new(layout.codec(), width, layout.value_bits()).map(Layout::with_marks)
}

impl Shape {
    /// The layout of the table once it grows.
    pub(crate) fn grown_layout(&self) -> Option<Layout> {
        if self.layout.marks().is_some() { Some(self.layout) } else { marked_layout(self.layout) }
    }

    /// The most distinct keys that a table of this shape can grow to. `None` if it cannot grow. A
    /// little less if there are entries without bits of their own, which take a slot in each half
    /// of a bucket.
    pub(crate) fn growth_limit(&self) -> Option<u64> {
        most_entries(&self.geometry(), self.grown_layout()?)
    }

    /// The same for a filter built for `capacity` keys. `None` if it was built for more than that.
    pub(crate) fn growth_limit_from(&self, capacity: u64) -> Option<u64> {
        self.growth_limit().filter(|&limit| capacity <= limit)
    }

    /// The shape itself, or an error if it cannot grow to so many keys.
    pub(crate) fn that_grows_to(self, capacity: u64) -> Result<Self, BuildError> {
        let largest = self.growth_limit().unwrap_or(0);
        if capacity <= largest { Ok(self) } else { Err(BuildError::TooLarge { capacity, largest }) }
    }
}

impl Layout {
    /// Whether a filter of this layout can grow: its slots have the bits that growth needs, or room
    /// for them. Filters of the smallest false-positive rates have no room.
    #[must_use]
    pub fn can_grow(self) -> bool {
        self.marks().is_some() || marked_layout(self).is_some()
    }
}

/// The false-positive rate of a table with marks that was full with `first` keys and has grown
/// until it is full with `last`. Each doubling takes a bit from older entries. Measured, that adds
/// 0.73 of the first rate (docs/decisions/0008-growth.md).
pub(crate) fn rate_when_full(layout: Layout, first: u64, last: u64) -> f64 {
    let fingerprints = (CORES << layout.fraction_bits()) as f64;
    let full = 2.0 * SLOTS as f64 * design_load(layout) / fingerprints;
    full * (1.0 + 0.73 * doublings(first, last))
}

/// Whether fingerprints are wide enough that few entries run out of bits after some doublings.
fn has_bits_to_lose(layout: &Layout) -> bool {
    layout.fraction_bits() >= GROWABLE_FRACTION_BITS
}

/// The layouts of filters, the narrowest first.
pub(crate) fn layouts(prefer: Prefer) -> impl Iterator<Item = Layout> + Clone {
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

/// [`choose`] among layouts whose buckets fill an atomic word of 32 or 64 bits.
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) fn choose_atomic(capacity: u64, rate: f64, prefer: Prefer) -> Result<Shape, BuildError> {
    let layouts = layouts(prefer).filter(|layout| [32, 64].contains(&layout.bucket_bits()));
    let reached = |shape: &Shape, keys| shape.rate_after(most_at_rate(shape, keys));
    first_within(layouts, capacity, rate, reached)
}

/// The smallest shape of a maplet for `capacity` entries of distinct keys, with at most `rate`
/// matches of an absent key on average.
pub(crate) fn choose_maplet(
    layouts: impl Iterator<Item = Layout> + Clone,
    capacity: u64,
    rate: f64,
) -> Result<Shape, BuildError> {
    let reached = |shape: &Shape, keys| shape.candidates_after(most_at_rate(shape, keys));
    first_within(layouts, capacity, rate, reached)
}

/// The layouts of maplets, the narrowest first. Slots of 64 bits take the widest fingerprint first,
/// since its width costs nothing.
pub(crate) fn maplet_layouts(
    value_bits: u32,
) -> Result<impl Iterator<Item = Layout> + Clone, BuildError> {
    if !(1..=MAX_VALUE_BITS).contains(&value_bits) {
        return Err(BuildError::ValueBits { value_bits });
    }
    let layouts =
        MAPLET_WIDTHS.filter_map(move |width| Layout::new(Codec::Plain, width, value_bits));
    let is_wide = |layout: &Layout| layout.slot_bits() >= WIDE_SLOT_BITS;
    let wide = layouts.clone().rev().filter(is_wide);
    Ok(layouts.filter(move |layout| !is_wide(layout)).chain(wide))
}

/// The shape for `keys` keys in the first layout whose rate, computed by `reached`, is at most
/// `rate`.
///
/// If there is none, the error says whether the keys are too many or the rate is too small. The
/// keys are too many if a hash cannot address the table of some layout, and if the rate can be
/// reached with fewer keys.
fn first_within(
    layouts: impl Iterator<Item = Layout> + Clone,
    keys: u64,
    rate: f64,
    reached: impl Fn(&Shape, u64) -> f64,
) -> Result<Shape, BuildError> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(BuildError::Rate { rate });
    }
    let (mut smallest, mut too_large) = (None, false);
    for layout in layouts.clone() {
        let Some(shape) = shape(keys, layout) else {
            too_large = true;
            continue;
        };
        let reached = reached(&shape, keys);
        if reached <= rate {
            return Ok(shape);
        }
        smallest = Some(smallest.map_or(reached, |least| reached.min(least)));
    }
    let keeps = |keys: u64| {
        let mut shapes = layouts.clone().filter_map(|layout| shape(keys, layout));
        shapes.any(|shape| reached(&shape, keys) <= rate)
    };
    let largest = if too_large { largest(keys, keeps) } else { 0 };
    Err(match smallest {
        Some(smallest) if largest == 0 => BuildError::TooPrecise { rate, smallest },
        _ => BuildError::TooLarge { capacity: keys, largest },
    })
}

/// The shape that `choose` returns for so many keys. Where they are too many, the error says how
/// many are not, as tried with `choose`.
pub(crate) fn with_true_limit(
    keys: u64,
    choose: impl Fn(u64) -> Result<Shape, BuildError>,
) -> Result<Shape, BuildError> {
    let chosen = choose(keys);
    if !matches!(chosen, Err(BuildError::TooLarge { .. })) {
        return chosen;
    }
    let largest = largest(keys, |keys| choose(keys).is_ok());
    Err(BuildError::TooLarge { capacity: keys, largest })
}

/// The most keys, fewer than `too_many`, that `fit`. 0 if none do.
fn largest(mut too_many: u64, fit: impl Fn(u64) -> bool) -> u64 {
    let mut most = 0;
    while too_many - most > 1 {
        let middle = u64::midpoint(most, too_many);
        if fit(middle) { most = middle } else { too_many = middle }
    }
    most
}

/// The doublings from `first` to `last` keys, rounded up to a whole number.
fn doublings(first: u64, last: u64) -> f64 {
    let times = last.div_ceil(first.max(1));
    f64::from(u64::BITS - (times.max(1) - 1).leading_zeros())
}

/// Expected false-positive rate at the design load. Small tables have far more keys than their
/// capacity then.
fn rate_at_design_load(shape: &Shape) -> f64 {
    let slots = shape.buckets() as f64 * SLOTS as f64;
    shape.rate_after(round_up(slots * load_of(shape.layout)))
}

/// The load of a table that holds its capacity.
fn load_of(layout: Layout) -> f64 {
    match layout.codec() {
        _ if layout.marks().is_some() => design_load(layout),
        Codec::SemiSorted => 0.97,
        Codec::Plain => 0.95,
    }
}

/// The shape for `capacity` keys in this layout. `None` if a hash cannot address the buckets.
fn shape(capacity: u64, layout: Layout) -> Option<Shape> {
    let load = load_of(layout);
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

/// Buckets for a segment of `keys` keys. If the keys are `shared` among segments, their number is
/// an average.
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
    let bucket_bits = segment_bits + u32::BITS - segment_buckets.saturating_sub(1).leading_zeros();
    bucket_bits + fingerprint_bits <= HASH_BITS
}

/// Rounds up to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
pub(crate) fn round_up(value: f64) -> u64 {
    let whole = value as u64;
    if (whole as f64) < value { whole + 1 } else { whole }
}

/// The square root of the value rounded up, itself rounded down. Needs no standard library.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is not negative")]
pub(crate) fn square_root(value: f64) -> f64 {
    let whole = value as u128;
    whole.saturating_add(u128::from((whole as f64) < value)).isqrt() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variance of a hundred million keys, in millionths of a key, exceeds 64 bits. Its square
    /// root was once 0.
    #[test]
    fn square_roots_are_right_at_any_size() {
        for root in [1.0, 3e3, 4.2e9, 4.3e9, 1e12, 3e18] {
            let found = square_root(root * root);
            assert!((found / root - 1.0).abs() < 1e-9, "{found}, not {root}");
        }
        assert_eq!([0.0, 0.1, 1.0, 8.9, 9.1].map(square_root), [0.0, 1.0, 1.0, 3.0, 3.0]);
    }
}
