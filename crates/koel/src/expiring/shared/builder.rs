//! How a `ConcurrentExpiringFilter` is built.

use alloc::vec::Vec;

use super::super::builder::empty;
use super::ConcurrentExpiringFilter;
use crate::builder::Builder;
use crate::concurrent::sync::Mutex;
use crate::error::BuildError;
use crate::image::shape::Shape;
use crate::image::sizing;

/// The most bits of the number of a shard. 64 shards are more than the threads of most machines,
/// so threads seldom meet.
pub(super) const MOST_SHARD_BITS: u32 = 6;
/// A shard has at least so many keys on average: smaller ones would be mostly spare room.
const KEYS_OF_A_SHARD: u64 = 16_384;

impl Builder<ConcurrentExpiringFilter> {
    /// Builds the empty filter, at tick 0.
    ///
    /// # Errors
    /// As [`Builder<ExpiringFilter>::build`](Builder::<ExpiringFilter>::build).
    pub fn build(&self) -> Result<ConcurrentExpiringFilter, BuildError> {
        let keys = self.settings.capacity;
        let mut bits = (keys / KEYS_OF_A_SHARD).max(1).ilog2().min(MOST_SHARD_BITS);
        loop {
            let each = self.clone().with(|settings| settings.capacity = share(keys, bits));
            let first = empty(&each.settings)?;
            let Shape { layout, segment_bits, segment_buckets } = first.body.buckets.shape();
            let width = layout.fingerprint_bits();
            if bits > 0 && !sizing::fits_hash(segment_bits + bits, segment_buckets, width) {
                bits -= 1;
                continue;
            }
            let mut shards = Vec::new();
            shards.try_reserve_exact(1 << bits).map_err(|_| BuildError::NoMemory)?;
            let step_ticks = first.step_ticks();
            shards.push(Mutex::new(first));
            for _ in 1..1 << bits {
                shards.push(Mutex::new(empty(&each.settings)?));
            }
            return Ok(ConcurrentExpiringFilter {
                shards: shards.into_boxed_slice(),
                began: Mutex::new(0),
                step_ticks,
                route: self.settings.route(),
                capacity: keys,
            });
        }
    }
}

/// Keys that a shard has room for: its share, and five standard deviations more.
pub(super) fn share(capacity: u64, bits: u32) -> u64 {
    let mean = capacity.div_ceil(1 << bits);
    if bits == 0 { mean } else { mean.saturating_add(mean.saturating_mul(25).isqrt()) }
}
