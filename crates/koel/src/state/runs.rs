//! The entries of a filter in order, a run of them at a time.
//!
//! An entry's [order](Geometry::order) is its base buckets and core, then its string, the first bit
//! highest. So equal entries are neighbours, and a prefix is next to what continues it. Two filters
//! with the same base addresses are joined like any two sorted lists, however each has grown.
//!
//! A [`Cut`] is a range of orders within a base segment. Both base buckets of an entry are in one
//! segment, so all entries of the range are found there. A [`Run`] has them sorted.
//!
//! A counter, or the value of a counting filter, is what the slots of an entry do not count. These
//! are sorted by order too, and joined with the entries.
//!
//! Cost: 16 bytes for each entry of a cut, and for each cut all buckets of its segment are read. A
//! segment has one cut for each [`CUT`] entries, but at most [`MOST_CUTS`].

use alloc::vec::Vec;
use core::iter::{self, Peekable};
use core::ops::Range;

use bytemuck::allocation::try_zeroed_vec;

use super::Body;
use crate::address::geometry::{CORE_BITS, Geometry};
use crate::error::MemoryError;
use crate::image::Kind;
use crate::mem::radix;
use crate::packing::SLOTS;

/// Entries of a cut, on average.
const CUT: u64 = if cfg!(test) { 1 << 7 } else { 1 << 20 };
const MOST_CUTS: u64 = 8;

/// A range of orders of one base segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    segment: u64,
    pub(crate) orders: Range<u64>,
    pub(crate) is_last: bool,
    /// Cuts of the segment.
    of: u64,
}

/// The cuts of filters with these base addresses, of which none has more entries: ascending. No
/// entry, and no entry that begins with it, is in two of them.
pub(crate) fn cuts(base: &Geometry, entries: u64) -> impl Iterator<Item = Cut> {
    let segments = 1 << base.segment_bits();
    let cuts = (entries / segments / CUT).clamp(1, MOST_CUTS);
    let size = u64::from(base.segment_buckets());
    // Cores of a base bucket are never parted.
    let mask = u64::MAX << (base.first_name(1).ilog2() - CORE_BITS);
    (0..segments).flat_map(move |segment| {
        let [start, end] = [segment, segment + 1].map(|it| base.first_name(it * size));
        let step = (end - start) / cuts;
        (0..cuts).map(move |cut| {
            let at = |cut: u64| if cut == cuts { end } else { start + ((cut * step) & mask) };
            let is_last = [segment + 1, cut + 1] == [segments, cuts];
            Cut { segment, orders: at(cut)..at(cut + 1), is_last, of: cuts }
        })
    })
}

/// Passes each cut of a filter to `visit`, with its run, in order.
///
/// # Errors
/// [`MemoryError`], and the first error of `visit`.
pub(crate) fn each_run<B: AsRef<[u8]> + Sync, E: From<MemoryError>>(
    of: &Body<B>,
    mut visit: impl FnMut(&Cut, &Run) -> Result<(), E>,
) -> Result<(), E> {
    let read = |[run]: &mut [Run; 1], cut: &Cut| run.read(of, cut);
    each_cut(of.table.base(), of.state.entries, read, |cut, [run]| visit(cut, run))
}

/// Passes each cut of two filters with the same base addresses to `visit`, with the runs of both.
///
/// # Errors
/// [`MemoryError`], and the first error of `visit`.
pub(crate) fn each_pair<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync, E: From<MemoryError>>(
    first: &Body<B>,
    second: &Body<O>,
    mut visit: impl FnMut(&Cut, [&Run; 2]) -> Result<(), E>,
) -> Result<(), E> {
    let read = |[ours, theirs]: &mut [Run; 2], cut: &Cut| {
        ours.read(first, cut)?;
        theirs.read(second, cut)
    };
    let entries = first.state.entries.max(second.state.entries);
    each_cut(first.table.base(), entries, read, |cut, runs| visit(cut, runs.each_ref()))
}

/// Reads the runs of each cut, and passes them to `visit`, one cut after the other. With the
/// `rayon` feature its threads read as many cuts at once, each into its own memory.
fn each_cut<const N: usize, E: From<MemoryError>>(
    base: &Geometry,
    entries: u64,
    read: impl Fn(&mut [Run; N], &Cut) -> Result<(), MemoryError> + Sync,
    mut visit: impl FnMut(&Cut, &[Run; N]) -> Result<(), E>,
) -> Result<(), E> {
    let runs = || [(); N].map(|()| Run::default());
    let mut cuts = cuts(base, entries);
    #[cfg(not(feature = "rayon"))]
    {
        let mut runs = runs();
        cuts.try_for_each(|cut| {
            read(&mut runs, &cut)?;
            visit(&cut, &runs)
        })
    }
    #[cfg(feature = "rayon")]
    {
        use rayon::prelude::*;
        let mut all = Vec::new();
        all.resize_with(rayon::current_num_threads(), || (Cut::default(), runs()));
        loop {
            let mut count = 0;
            for ((cut, _), next) in all.iter_mut().zip(cuts.by_ref()) {
                (*cut, count) = (next, count + 1);
            }
            if count == 0 {
                return Ok(());
            }
            let all = &mut all[..count];
            all.par_iter_mut().try_for_each(|(cut, runs)| read(runs, cut))?;
            all.iter().try_for_each(|(cut, runs)| visit(cut, runs))?;
        }
    }
}

/// The entries of a cut in order.
#[derive(Debug, Default)]
pub(crate) struct Run {
    orders: Vec<u64>,
    /// What the slots of an entry do not count of its copies, in order.
    beyond: Vec<(u64, u64)>,
    spare: Vec<u64>,
    counts: Vec<radix::Counts>,
}

impl Run {
    /// Reads the entries of a cut.
    ///
    /// # Errors
    /// [`MemoryError`] if there is no memory for them.
    pub(crate) fn read<B: AsRef<[u8]>>(
        &mut self,
        of: &Body<B>,
        cut: &Cut,
    ) -> Result<(), MemoryError> {
        let Self { orders, beyond, spare, counts } = self;
        orders.clear();
        beyond.clear();
        let (table, Range { start, end }) = (&of.table, cut.orders.clone());
        let layout = table.layout();
        let buckets = (table.buckets() >> table.base().segment_bits()) / cut.of;
        let slots = usize::try_from(buckets).map_or(usize::MAX, |it| it.saturating_mul(SLOTS));
        let mut fits = orders.try_reserve(slots).is_ok();
        let is_whole = cut.of == 1;
        table.each_order(cut.segment, start, |found, slots| {
            fits = fits && orders.try_reserve(found.len()).is_ok();
            if fits && is_whole {
                orders.extend_from_slice(found);
            } else if fits {
                orders.extend(found.iter().filter(|&it| cut.orders.contains(it)));
            }
            // Other values are no counts.
            if of.state.kind() == Kind::Counting {
                let values = slots.iter().map(|&slot| layout.value_of(slot));
                let above_one = found.iter().zip(values).filter(|(_, value)| *value > 1);
                for (&order, value) in above_one.filter(|(it, _)| cut.orders.contains(it)) {
                    fits &= push(beyond, (order, value - 1));
                }
            }
        });
        for (name, count) in of.state.side.counters.range(start..=end - 1) {
            let prefix = table.addresses().named(name);
            fits &= prefix.is_none_or(|it| push(beyond, (table.addresses().order(&it), count)));
        }
        beyond.sort_unstable();
        fits &= spare.try_reserve_exact(orders.len().saturating_sub(spare.len())).is_ok();
        if counts.is_empty() {
            *counts = try_zeroed_vec(1).unwrap_or_default();
        }
        if !fits || counts.is_empty() {
            return Err(MemoryError { bytes: 2 * size_of_val(&orders[..]) });
        }
        spare.resize(orders.len(), 0);
        let highest = u64::BITS - (start ^ (end - 1)).leading_zeros();
        radix::sort(orders, spare, &mut counts[0], table.addresses().end_of_orders()..highest);
        Ok(())
    }

    /// How many distinct entries there are.
    pub(crate) fn distinct(&self) -> u64 {
        let repeated = self.orders.windows(2).filter(|pair| pair[0] == pair[1]).count();
        (self.orders.len() - repeated) as u64
    }

    /// Each distinct entry with its copies, or its count.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries { orders: &self.orders, beyond: &self.beyond }
    }
}

/// Adds an item. False if there is no memory for it.
#[inline]
fn push<T>(all: &mut Vec<T>, item: T) -> bool {
    let fits = all.len() < all.capacity() || all.try_reserve(1).is_ok();
    if fits {
        all.push(item);
    }
    fits
}

/// The distinct entries of a run with their copies.
#[derive(Clone, Debug)]
pub(crate) struct Entries<'a> {
    orders: &'a [u64],
    beyond: &'a [(u64, u64)],
}

impl Iterator for Entries<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let order = *self.orders.first()?;
        let mut copies = 0_u64;
        while let Some((_, others)) = self.orders.split_first().filter(|it| *it.0 == order) {
            (self.orders, copies) = (others, copies + 1);
        }
        while let Some((it, others)) = self.beyond.split_first().filter(|(it, _)| it.0 <= order) {
            self.beyond = others;
            copies = copies.saturating_add(if it.0 == order { it.1 } else { 0 });
        }
        Some((order, copies))
    }
}

/// An entry of two filters: its order, and its copies in each; 0 if it is not there.
pub(crate) type Joined = (u64, [u64; 2]);

/// Every entry of two runs of one cut.
#[inline]
pub(crate) fn join([one, other]: [&Run; 2]) -> Peekable<impl Iterator<Item = Joined>> {
    let (mut one, mut other) = (one.entries(), other.entries());
    let mut next = [one.next(), other.next()];
    let joined = iter::from_fn(move || {
        let order_of = |it: Option<(u64, u64)>| it.map_or(u64::MAX, |(order, _)| order);
        let order = order_of(next[0]).min(order_of(next[1]));
        let copies = next.map(|it| it.filter(|it| it.0 == order).map_or(0, |it| it.1));
        if copies[0] > 0 {
            next[0] = one.next();
        }
        if copies[1] > 0 {
            next[1] = other.next();
        }
        (copies != [0; 2]).then_some((order, copies))
    });
    joined.peekable()
}

/// Reads the next entries that share base buckets, core and as many bits as every entry has. False
/// if there are none.
///
/// # Errors
/// [`MemoryError`] if there is no memory for them.
pub(crate) fn next_group(
    joined: &mut Peekable<impl Iterator<Item = Joined>>,
    base: &Geometry,
    group: &mut Vec<Joined>,
) -> Result<bool, MemoryError> {
    group.clear();
    let Some(first) = joined.next() else { return Ok(false) };
    let bits = base.end_of_names() + 1;
    let mut next = Some(first);
    while let Some(it) = next {
        if !push(group, it) {
            return Err(MemoryError { bytes: size_of_val(&group[..]) });
        }
        next = joined.next_if(|it| it.0 >> bits == first.0 >> bits);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::shape::Shape;
    use crate::{CountingFilter, CuckooFilter, Prefer};
    use alloc::collections::BTreeMap;
    use testkit::keys::hashes;

    /// The entries of all cuts, which ascend.
    fn all(body: &Body<impl AsRef<[u8]>>, entries: u64) -> Vec<(u64, u64)> {
        let (mut run, mut all) = (Run::default(), Vec::new());
        for cut in cuts(body.table.base(), entries) {
            run.read(body, &cut).unwrap();
            all.extend(run.entries());
            assert!(run.entries().all(|(order, _)| cut.orders.contains(&order)));
        }
        assert!(all.is_sorted_by(|one, next| one.0 < next.0));
        all
    }

    /// The entries as a walk over the buckets finds them.
    fn found(body: &Body<impl AsRef<[u8]>>) -> Vec<(u64, u64)> {
        let order = |entry: &_| body.table.addresses().order(entry);
        let entries = body.table.distinct_entries();
        let found = entries.map(|entry| (order(&entry.prefix), body.count_of(&entry)));
        found.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    #[test]
    fn the_cuts_have_all_entries_with_their_copies_in_order() {
        for prefer in [Prefer::Fast, Prefer::Small] {
            for (rate, segment_bits, keys) in [(0.03, 0, 900), (1e-6, 3, 900), (0.002, 1, 9000)] {
                let builder = CuckooFilter::builder(1000, rate).prefer(prefer).growable();
                let plain = builder.build().unwrap();
                let segment_buckets = (300 >> segment_bits) + 1;
                let shape = Shape { segment_bits, segment_buckets, ..plain.body.shape() };
                let mut filter = CuckooFilter::empty(shape, plain.body.state.profile).unwrap();
                for (number, key) in (0..keys).zip(hashes(1, keys)) {
                    (0..number % 5).for_each(|_| filter.insert(&key).unwrap());
                }
                for key in hashes(1, keys).step_by(3) {
                    filter.remove(&key);
                }
                assert_eq!(filter.has_grown(), keys > 1000);
                let expected = found(&filter.body);
                for entries in [0, 1 << 8, 1 << 20] {
                    assert!(all(&filter.body, entries) == expected, "{prefer:?}, {rate}");
                }
            }
        }
    }

    #[test]
    fn the_counts_of_a_counting_filter_come_with_its_entries() {
        let mut filter = CountingFilter::builder(100, 0.01).count_bits(2).build().unwrap();
        let keys: Vec<u64> = hashes(1, 90).collect();
        for (times, key) in (1..).zip(&keys) {
            filter.add(key, times).unwrap();
        }
        let all = all(&filter.body, 90);
        assert!(all == found(&filter.body));
        assert_eq!(all.iter().map(|it| it.1).sum::<u64>(), filter.len());
    }
}
