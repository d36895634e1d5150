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

use crate::address::geometry::Geometry;
use crate::builder::Builder;
use crate::error::{BuildError, FullError};
use crate::filter::parts::Parts;
use crate::image::shape::{Profile, Shape};
use crate::mem::buffer::Buffer;
use crate::side::{Counters, Pair, Side};
use crate::state::State;
use crate::state::edit::COPIES;
use crate::state::store::Store;
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
            filter.body.insert_each::<COPIES>(hashes, &mut [])?;
        }
        Ok(filter)
    }

    /// Fills an empty filter by segments. `None` if one has no room, or if the memory is short: the
    /// filter then holds some of the keys.
    fn fill(&self, filter: &mut CuckooFilter, hashes: impl Hashes + Sync) -> Option<()> {
        let table = &mut filter.body.table;
        (!table.grows()).then_some(())?;
        let geometry = table.base().clone();
        let parts = self.partition(hashes, table.base().segment_bits())?;
        let segments = self.fill_segments(table, filter.body.state.profile, &parts)?;
        filter.body.state.take_in(&geometry, segments).ok()
    }

    /// The addresses by segment, one share of the keys after the other; `None` if there is no
    /// memory for them. There is one share, or one for each thread.
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
    fn fill_segments<'t>(
        &self,
        table: &'t mut Table<Buffer>,
        profile: Profile,
        shares: &[Parts],
    ) -> Option<Vec<Segment<'t>>> {
        let shape = Shape::of(table.base(), table.layout());
        let fill = |scratch: &mut Option<CuckooFilter>,
                    (number, segment): (usize, &mut Segment)| {
            let scratch = scratch.as_mut()?;
            scratch.clear();
            shares.iter().try_for_each(|parts| parts.insert_into(scratch, number))?;
            segment.take_in(scratch)
        };
        let scratch = || segment_of(shape, profile);
        let bytes = table.segments_mut();
        let mut segments = Vec::new();
        segments.try_reserve_exact(bytes.len()).ok()?;
        segments.extend(bytes.map(Segment::new));
        #[cfg(feature = "rayon")]
        if self.settings.parallel {
            use rayon::prelude::*;
            let each = segments.par_iter_mut().enumerate();
            each.map_init(scratch, fill).collect::<Option<()>>()?;
            return Some(segments);
        }
        let mut scratch = scratch();
        segments.iter_mut().enumerate().try_for_each(|segment| fill(&mut scratch, segment))?;
        Some(segments)
    }
}

/// Standard deviations above its share of the keys that a segment takes. More come with a chance of
/// 1e-19 for each segment, so no build of up to 2^32 segments fails by chance.
const DEVIATIONS: u64 = 9;

/// An empty filter like one segment of another; `None` if there is no memory for it.
///
/// Its capacity is its share of the keys and [`DEVIATIONS`] more. Its slots are for five of them,
/// up to where searches begin to fail: the few keys beyond find a slot or go to the stash. With the
/// share alone, every second segment would count its last second copies, and removals from a large
/// filter would search a thousand counters. It does not grow: if a segment is full, the whole
/// filter grows.
pub(super) fn segment_of(shape: Shape, profile: Profile) -> Option<CuckooFilter> {
    let share = profile.capacity.div_ceil(1 << shape.segment_bits);
    let capacity = share + DEVIATIONS * share.isqrt();
    let shape = Shape { segment_bits: 0, ..shape };
    CuckooFilter::empty(shape, Profile { capacity, growable: false, ..profile })
}

/// The bytes, the totals and the counters of a segment.
pub(super) struct Segment<'t> {
    bytes: &'t mut [u8],
    len: u64,
    entries: u64,
    spares: u64,
    /// By the names and the addresses of the filter that was filled.
    counters: Vec<(u64, u64)>,
    stash: Vec<(Pair, u64)>,
}

impl<'t> Segment<'t> {
    pub(super) fn new(bytes: &'t mut [u8]) -> Self {
        let (counters, stash) = (Vec::new(), Vec::new());
        Self { bytes, len: 0, entries: 0, spares: 0, counters, stash }
    }

    /// Takes in a filled filter. `None` if there is no memory for the counters and the stash.
    pub(super) fn take_in<S: Store>(&mut self, filled: &CuckooFilter<S>) -> Option<()> {
        let len = self.bytes.len();
        self.bytes.copy_from_slice(&filled.body.table.bytes()[..len]);
        let State { len, entries, spares, side, .. } = &filled.body.state;
        (self.len, self.entries, self.spares) = (*len, *entries, *spares);
        let Side { counters, stash, .. } = side;
        self.counters.try_reserve_exact(usize::try_from(counters.len()).ok()?).ok()?;
        self.counters.extend(counters.iter());
        self.stash.try_reserve_exact(usize::try_from(stash.len()).ok()?).ok()?;
        self.stash.extend(stash.iter());
        Some(())
    }
}

impl State<Buffer> {
    /// Adds the totals, counters and stashes of all segments of a table with this geometry.
    pub(super) fn take_in(
        &mut self,
        geometry: &Geometry,
        segments: Vec<Segment<'_>>,
    ) -> Result<(), FullError> {
        let mut counters = 0;
        for segment in &segments {
            counters += segment.counters.len() as u64;
            self.len = self.len.checked_add(segment.len).ok_or(FullError::Overflow)?;
            self.entries += segment.entries;
            self.spares += segment.spares;
        }
        let limit = self.profile.counter_limit;
        if counters > limit {
            return Err(FullError::Counters { limit });
        }
        if !Counters::fit(counters) {
            return Err(FullError::NoMemory);
        }
        let bits = segments.len().trailing_zeros();
        for (number, segment) in (0..).zip(&segments) {
            for &((address, _), copies) in &segment.stash {
                self.side.stash_copies((whole_address(number, address, bits), 0), copies);
            }
        }
        let counters = (0..).zip(&segments).flat_map(|(number, segment)| {
            let counters = segment.counters.iter();
            counters.map(move |&(name, count)| (geometry.name_in_whole(number, name), count))
        });
        self.side.counters = counters.collect();
        Ok(())
    }
}

/// The address of a key of the whole table, of which one of 2^`bits` segments was filled with the
/// other bits.
pub(super) fn whole_address(segment: u64, address: u64, bits: u32) -> u64 {
    address.checked_shr(bits).unwrap_or(0) | segment.rotate_right(bits)
}
