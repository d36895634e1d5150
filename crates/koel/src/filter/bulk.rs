//! A filter from all its keys at once: sorted by segment first, then one segment after the other
//! while the cache holds it.
//!
//! Both buckets of a key are in one segment, and the top k bits of its hash say which. So a segment
//! is a small filter of its own: it is filled apart, with the rest of the hash, and its bytes are
//! copied to their place. Segments know nothing of each other, so they may be filled by several
//! threads, and the bytes are the same however many there are.
//!
//! Cost: 8 bytes of memory a key while it runs. In a table that no cache holds, several times as
//! fast as inserts in the order of the keys.

use alloc::{vec, vec::Vec};

use crate::builder::Builder;
use crate::error::{BuildError, FullError};
use crate::filter::parts::Parts;
use crate::image::shape::Profile;
use crate::image::shape::Shape;
use crate::mem::buffer::Buffer;
use crate::state::State;
use crate::state::counters::{Counters, ReadCounters};
use crate::table::Table;
use crate::table::blocks::{Hashed, Hashes};
use crate::{CuckooFilter, Key};

impl Builder<CuckooFilter> {
    /// Builds the filter of `keys`: the same answers as [`build`](Self::build) and
    /// [`insert_many`](CuckooFilter::insert_many) give.
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
    /// As [`build`](Self::build), and [`BuildError::Full`] where the keys do not fit: not for
    /// [`capacity`](CuckooFilter::capacity) distinct keys.
    pub fn build_from<K: Key + Sync>(&self, keys: &[K]) -> Result<CuckooFilter, BuildError> {
        self.build_with(Hashed(self.settings.route(), keys))
    }

    /// Builds by segments, or, where there is only one or where one has no room, in the order of
    /// the keys: then it is the error of that order.
    fn build_with(&self, hashes: impl Hashes + Sync) -> Result<CuckooFilter, BuildError> {
        let mut filter = self.build()?;
        if filter.segments() > 1
            && let Some(table) = filter.body.buckets.fixed_mut()
        {
            let state = &mut filter.body.state;
            let parts = self.partition(hashes, table.geometry().segment_bits());
            let filled = parts.map(|parts| self.fill_segments(table, state, &parts));
            if let Some(Ok(())) = filled {
                return Ok(filter);
            }
            filter.clear();
        }
        filter.insert_each(hashes).map_err(BuildError::Full)?;
        Ok(filter)
    }

    /// The keys by segment, one share of them after the other; `None` where the memory cannot be
    /// had.
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

    /// Fills the segments of an empty filter; after an error it holds some of them.
    fn fill_segments(
        &self,
        table: &mut Table<Buffer>,
        state: &mut State<Counters>,
        shares: &[Parts],
    ) -> Result<(), FullError> {
        let (shape, profile) = (Shape::of(table.geometry(), table.layout()), state.profile);
        let segment_buckets = u64::from(shape.segment_buckets);
        let fill = |scratch: &mut CuckooFilter, (segment, bytes): (usize, &mut [u8])| {
            scratch.clear();
            for parts in shares {
                parts.insert_into(scratch, segment)?;
            }
            bytes.copy_from_slice(&scratch.body.buckets.bytes()[..bytes.len()]);
            Ok(Filled::of(scratch, segment as u64 * segment_buckets))
        };
        let scratch = || segment_of(shape, profile);
        let segments = table.segments_mut();
        #[cfg(feature = "rayon")]
        let filled = if self.settings.parallel {
            use rayon::prelude::*;
            segments.into_par_iter().enumerate().map_init(scratch, fill).collect()
        } else {
            in_turn(segments, scratch(), fill)
        };
        #[cfg(not(feature = "rayon"))]
        let filled = in_turn(segments, scratch(), fill);
        state.take_in(filled?)
    }
}

fn in_turn<'a>(
    segments: Vec<&'a mut [u8]>,
    mut scratch: CuckooFilter,
    fill: impl Fn(&mut CuckooFilter, (usize, &'a mut [u8])) -> Result<Filled, FullError>,
) -> Result<Vec<Filled>, FullError> {
    segments.into_iter().enumerate().map(|segment| fill(&mut scratch, segment)).collect()
}

/// An empty filter like one segment of another. Its capacity is that of the keys that it may get by
/// chance, five standard deviations beyond its share, as its slots are: with the share alone every
/// second segment would count its last second copies, and removals from a large filter would walk
/// among a thousand counters. It does not grow: the whole filter does, where a segment is full.
fn segment_of(shape: Shape, profile: Profile) -> CuckooFilter {
    let share = profile.capacity.div_ceil(1 << shape.segment_bits);
    let capacity = share + 5 * share.isqrt();
    let shape = Shape { segment_bits: 0, ..shape };
    let profile = Profile { capacity, growable: false, ..profile };
    CuckooFilter::empty(shape, profile).expect("smaller than the whole")
}

/// What a filled segment holds besides its buckets.
struct Filled {
    len: u64,
    entries: u64,
    spares: u64,
    counters: Vec<(u64, u64)>,
}

impl Filled {
    /// Of a segment whose first bucket is `base` in the whole table.
    fn of(segment: &CuckooFilter, base: u64) -> Self {
        let base = base << segment.layout().fingerprint_bits();
        Self {
            len: segment.body.state.len,
            entries: segment.body.state.entries,
            spares: segment.body.state.spares,
            counters: segment
                .body
                .state
                .counters
                .iter()
                .map(|(id, count)| (base + id, count))
                .collect(),
        }
    }
}

impl State<Counters> {
    /// Takes over the counts of segments, which are in their places.
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
