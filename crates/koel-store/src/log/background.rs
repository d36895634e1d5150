//! The compaction thread waits until a segment is full, checks whether compaction is worthwhile,
//! and compacts at a limited rate, so that other work gets the disk too.

use std::thread;
use std::time::Duration;

use super::pick::Policy;
use super::store::Store;
use crate::kernel::threads::lock;

/// Bytes copied between two pauses.
const STEP: u64 = 1 << 20;
/// The longest sleep between two checks whether the thread is to stop.
const SLICE: Duration = Duration::from_millis(100);
/// If more than this percentage of the log is dead, the rate has no limit: space matters more then.
const URGENT_PERCENT: u64 = 28;

/// Compacts whenever a segment is full. [`Store::segment_filled`] wakes and stops it.
pub(super) fn compact(store: &Store, bytes_per_second: u64) {
    let mut copied = 0;
    let mut pace = |store: &Store, bytes: u64| {
        copied += bytes;
        if copied >= STEP {
            pause(store, duration_of(copied, bytes_per_second));
            copied = 0;
        }
        !store.segment_filled.is_stopped()
    };
    while store.segment_filled.wait() {
        // A failure loses nothing. It is kept for `stats`, and the next full segment is the next
        // try.
        let failure = store.compact(Policy::BACKGROUND, &mut pace).err();
        *lock(&store.compaction_failure) = failure.map(|error| error.to_string());
    }
}

/// Returns how long this many bytes take at a rate.
fn duration_of(bytes: u64, per_second: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / per_second.max(1))
}

/// Sleeps, but not while space is short or the thread is to stop.
fn pause(store: &Store, mut time: Duration) {
    while !time.is_zero() && !store.segment_filled.is_stopped() && !is_urgent(store) {
        let slice = time.min(SLICE);
        thread::sleep(slice);
        time -= slice;
    }
}

fn is_urgent(store: &Store) -> bool {
    let stats = store.stats();
    stats.dead_bytes * 100 >= stats.log_bytes * URGENT_PERCENT
}
