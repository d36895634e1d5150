//! Converts a shared expiring filter to a plain one and back. Every bucket stays the same.
//!
//! The groups of the shards are not those of the whole table. So dead entries are swept out first:
//! then all groups are swept at the present step.

use alloc::vec::Vec;

use super::super::ExpiringFilter;
use super::ConcurrentExpiringFilter;
use super::builder::{MOST_SHARD_BITS, share};
use crate::concurrent::sync::{Mutex, lock};
use crate::error::ConvertError;
use crate::image::shape::Shape;
use crate::mem::buffer::Buffer;
use crate::state::sweeps::Sweeps;
use crate::state::{Body, Expiry};
use crate::table::table_bytes;

impl ConcurrentExpiringFilter {
    /// Copies the filter as it is now into a plain one, for bytes and files. Other threads wait
    /// meanwhile. O(buckets), and as much memory again.
    ///
    /// ```
    /// use koel::{ConcurrentExpiringFilter, ExpiringFilter};
    ///
    /// let seen = ConcurrentExpiringFilter::builder(1_000_000, 0.001).window(600).build()?;
    /// seen.insert("message 1")?;
    /// let bytes = seen.snapshot()?.to_bytes();
    ///
    /// let seen = ConcurrentExpiringFilter::try_from(ExpiringFilter::from_bytes(&bytes)?)?;
    /// assert!(!seen.insert_unique("message 1")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConvertError::NoMemory`] where the system has no memory for the copy.
    pub fn snapshot(&self) -> Result<ExpiringFilter, ConvertError> {
        let _unchanged = lock(&self.began);
        // All at once, so that the copy is of one moment.
        let mut shards: Vec<_> = self.shards.iter().map(|shard| lock(shard)).collect();
        let first = &shards[0].body;
        let Shape { layout, segment_bits, segment_buckets } = first.buckets.shape();
        let segment_bits = segment_bits + self.shards.len().trailing_zeros();
        let shape = Shape { layout, segment_bits, segment_buckets };
        let mut profile = first.state.profile;
        profile.capacity = self.capacity;
        let mut clock = *first.clock();
        let whole = Body::expiring(shape, profile, clock);
        let mut whole = whole.ok_or(ConvertError::NoMemory)?;
        for (number, shard) in shards.iter_mut().enumerate() {
            shard.body.sweep_stamped();
            copy_part(&shard.body, &mut whole, (number, 0));
            whole.state.len += shard.len();
            if number > 0 {
                clock.add_evicted(shard.body.clock());
            }
        }
        drop(shards);
        whole.state.entries = whole.state.len;
        whole.state.expiry = Some(Expiry::uncounted(clock));
        let body = whole.with_counted_stamps().ok_or(ConvertError::NoMemory)?;
        Ok(ExpiringFilter { body })
    }
}

/// Converts a filter of any size, built or loaded. Its segments become the shards: a filter of up
/// to some hundred thousand keys that was not a shared one has only one. O(buckets), and as much
/// memory again.
///
/// A filter that [grows](ExpiringFilter::is_growable) is refused and dropped.
impl TryFrom<ExpiringFilter> for ConcurrentExpiringFilter {
    type Error = ConvertError;

    fn try_from(mut filter: ExpiringFilter) -> Result<Self, ConvertError> {
        if filter.has_grown() {
            return Err(ConvertError::Grown);
        }
        filter.body.sweep_stamped();
        let whole = &filter.body;
        let Shape { layout, segment_bits, segment_buckets } = whole.buckets.shape();
        let bits = segment_bits.min(MOST_SHARD_BITS);
        let shape = Shape { layout, segment_bits: segment_bits - bits, segment_buckets };
        let mut profile = whole.state.profile;
        profile.capacity = share(filter.capacity(), bits);
        let mut shards = Vec::new();
        shards.try_reserve_exact(1 << bits).map_err(|_| ConvertError::NoMemory)?;
        for number in 0..1_usize << bits {
            let mut clock = *whole.clock();
            if number > 0 {
                clock.forget_evicted();
            }
            let empty = Body::expiring(shape, profile, clock);
            let mut shard = empty.ok_or(ConvertError::NoMemory)?;
            copy_part(whole, &mut shard, (0, number));
            shard.state.len = shard.live_entries();
            shard.state.entries = shard.state.len;
            let body = shard.with_counted_stamps().ok_or(ConvertError::NoMemory)?;
            shards.push(Mutex::new(ExpiringFilter { body }));
        }
        Ok(Self {
            shards: shards.into_boxed_slice(),
            began: Mutex::new(filter.step_began()),
            step_ticks: filter.step_ticks(),
            route: filter.body.state.profile.route,
            capacity: filter.capacity(),
        })
    }
}

/// Copies the buckets of the smaller of two tables. One of the numbers says which part of the
/// larger one they are.
fn copy_part(
    from: &Body<Buffer, Sweeps>,
    to: &mut Body<Buffer, Sweeps>,
    (to_part, from_part): (usize, usize),
) {
    let buckets = from.buckets.count().min(to.buckets.count());
    let layout = from.buckets.layout();
    // Segments of plain buckets are whole bytes.
    let bits = buckets * u64::from(layout.bucket_bits());
    let bytes = usize::try_from(bits / 8).unwrap_or(usize::MAX);
    debug_assert!(table_bytes(layout, buckets).is_some_and(|all| bytes <= all));
    let source = &from.buckets.bytes()[from_part * bytes..][..bytes];
    if let Some(table) = to.buckets.fixed_mut() {
        table.bytes_mut()[to_part * bytes..][..bytes].copy_from_slice(source);
    }
}
