//! Builds a filter from all its keys: sorts them by segment, then fills one segment after the
//! other, each while the cache holds it.
//!
//! Both buckets of a key are in one segment, which the top k bits of the address name. So a segment
//! is a small filter of its own. It is filled in a scratch filter with the other bits of the
//! addresses, and its bytes are copied to their place. Segments do not depend on each other:
//! several threads may fill them, and the bytes are the same for any number of threads.
//!
//! Cost: 8 bytes of memory per key until it returns. If the table is larger than the caches,
//! several times as fast as inserts in the order of the keys.

use alloc::{vec, vec::Vec};

use crate::builder::Builder;
use crate::error::{BuildError, FullError};
use crate::filter::parts::Parts;
use crate::image::shape::{Profile, Shape};
use crate::mem::buffer::Buffer;
use crate::state::State;
use crate::state::counters::{Counters, ReadCounters};
use crate::table::Table;
use crate::table::blocks::{Hashed, Hashes};
use crate::{CuckooFilter, Key};

impl Builder<CuckooFilter> {
    /// Builds the filter of `keys`. It answers as a filter that is [built](Self::build) empty and
    /// filled with [`insert_many`](CuckooFilter::insert_many).
    ///
    /// ```
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let filter = koel::CuckooFilter::builder(10_000, 0.001).build_from(&keys)?;
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// assert_eq!(filter.len(), 10_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`build`](Self::build), and [`BuildError::Full`] if the keys do not fit, which never
    /// happens up to [`capacity`](CuckooFilter::capacity) distinct keys.
    pub fn build_from<K: Key + Sync>(&self, keys: &[K]) -> Result<CuckooFilter, BuildError> {
        let hashes = Hashed(self.settings.route(), keys);
        let mut filter = self.build()?;
        if filter.segments() > 1 && self.fill(&mut filter, hashes).is_none() {
            filter.clear();
        }
        if filter.is_empty() {
            filter.body.insert_each::<false>(hashes, &mut []).map_err(BuildError::Full)?;
        }
        Ok(filter)
    }

    /// Fills an empty filter by segments. `None` if one has no room, or if the memory is short: the
    /// filter then holds some of the keys.
    fn fill(&self, filter: &mut CuckooFilter, hashes: impl Hashes + Sync) -> Option<()> {
        let table = filter.body.buckets.fixed_mut()?;
        let parts = self.partition(hashes, table.geometry().segment_bits())?;
        let filled = self.fill_segments(table, filter.body.state.profile, &parts)?;
        filter.body.state.take_in(filled).ok()
    }

    /// The addresses by segment, one share of the keys after the other; `None` if there is no
    /// memory for them.
    fn partition(&self, hashes: impl Hashes + Sync, segment_bits: u32) -> Option<Vec<Parts>> {
        let work = |keys| Parts::of(hashes, keys, segment_bits);
        #[cfg(feature = "rayon")]
        if self.settings.parallel {
            use rayon::prelude::*;
            let share =
                hashes.len().div_ceil(rayon::current_num_threads()).max(crate::mem::vector::BLOCK);
            let shares = (0..hashes.len()).into_par_iter().step_by(share);
            return shares.map(|start| work(start..(start + share).min(hashes.len()))).collect();
        }
        Some(vec![work(0..hashes.len())?])
    }

    /// Fills the segments of an empty table.
    fn fill_segments(
        &self,
        table: &mut Table<Buffer>,
        profile: Profile,
        shares: &[Parts],
    ) -> Option<Vec<Filled>> {
        let shape = Shape::of(table.geometry(), table.layout());
        let segment_buckets = u64::from(shape.segment_buckets);
        let fill = |scratch: &mut Option<CuckooFilter>, (segment, bytes): (usize, &mut [u8])| {
            let scratch = scratch.as_mut()?;
            scratch.clear();
            shares.iter().try_for_each(|parts| parts.insert_into(scratch, segment))?;
            bytes.copy_from_slice(&scratch.body.buckets.bytes()[..bytes.len()]);
            Some(Filled::of(scratch, segment as u64 * segment_buckets))
        };
        let scratch = || segment_of(shape, profile);
        let segments = table.segments_mut();
        #[cfg(feature = "rayon")]
        if self.settings.parallel {
            use rayon::prelude::*;
            return segments.into_par_iter().enumerate().map_init(scratch, fill).collect();
        }
        let mut scratch = scratch();
        segments.into_iter().enumerate().map(|segment| fill(&mut scratch, segment)).collect()
    }
}

/// An empty filter like one segment of another; `None` if there is no memory for it.
///
/// Its capacity is its share of the keys and five standard deviations more, as its slots are. With
/// the share alone, every second segment would count its last second copies, and removals from a
/// large filter would search a thousand counters. It does not grow: if a segment is full, the whole
/// filter grows.
fn segment_of(shape: Shape, profile: Profile) -> Option<CuckooFilter> {
    let share = profile.capacity.div_ceil(1 << shape.segment_bits);
    let capacity = share + 5 * share.isqrt();
    let shape = Shape { segment_bits: 0, ..shape };
    CuckooFilter::empty(shape, Profile { capacity, growable: false, ..profile })
}

/// The totals and the counters of a filled segment.
struct Filled {
    len: u64,
    entries: u64,
    spares: u64,
    counters: Vec<(u64, u64)>,
}

impl Filled {
    /// Of a segment whose first bucket is number `base` of the whole table.
    fn of(segment: &CuckooFilter, base: u64) -> Self {
        let base = base << segment.layout().fingerprint_bits();
        let State { len, entries, spares, counters, .. } = &segment.body.state;
        let counters = counters.iter().map(|(name, count)| (base + name, count)).collect();
        Self { len: *len, entries: *entries, spares: *spares, counters }
    }
}

impl State<Counters> {
    /// Adds the totals and counters of segments.
    fn take_in(&mut self, filled: Vec<Filled>) -> Result<(), FullError> {
        for segment in &filled {
            self.len = self.len.checked_add(segment.len).ok_or(FullError::Overflow)?;
            self.entries += segment.entries;
            self.spares += segment.spares;
        }
        self.counters = Counters::from_iter(filled.into_iter().flat_map(|filled| filled.counters));
        let limit = self.profile.counter_limit;
        if self.counters.len() > limit { Err(FullError::Counters { limit }) } else { Ok(()) }
    }
}
