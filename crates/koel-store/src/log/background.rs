//! The threads of a store.
//!
//! * One compacts: it waits until a segment is full, looks whether something is worth it, and does it at a rate that leaves the disk to others.
//! * One syncs: it waits until much of the active segment is not durable, so that little is left for the put that fills it. It does what [`sync`](Store::sync) does for a caller, so that failures are not its own: they poison the store.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::pick::Policy;
use super::store::{Store, lock};

/// Bytes between two looks at the rate.
const STEP: u64 = 1 << 20;
/// The longest time between two looks at the order to stop.
const SLICE: Duration = Duration::from_millis(100);
/// Above this share of dead bytes, in percent, the rate has no limit: space matters more then.
const URGENT: u64 = 28;

/// Starts the thread that compacts. It ends when [`Store::filled`] says so.
pub(super) fn compact(store: Arc<Store>, bytes_per_second: u64) -> io::Result<JoinHandle<()>> {
    let name = "koel-compaction".to_owned();
    thread::Builder::new().name(name).spawn(move || run(&store, bytes_per_second))
}

/// Starts the thread that syncs. It ends when [`Store::unsynced`] says so.
pub(super) fn sync(store: Arc<Store>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("koel-sync".to_owned()).spawn(move || {
        while store.unsynced.wait() {
            // Who writes next is told.
            drop(store.sync());
        }
    })
}

fn run(store: &Store, bytes_per_second: u64) {
    let mut since = 0;
    let mut pace = |store: &Store, bytes: u64| {
        since += bytes;
        if since >= STEP {
            rest(store, time_of(since, bytes_per_second));
            since = 0;
        }
        !store.filled.stops()
    };
    while store.filled.wait() {
        // A failure changes nothing that was written; it is kept for `stats`, and the next sealed segment is the next chance.
        let failed = store.compact(Policy::BACKGROUND, &mut pace).err();
        *lock(&store.compaction_failed) = failed.map(|error| error.to_string());
    }
}

/// How long so many bytes take at a rate.
fn time_of(bytes: u64, per_second: u64) -> Duration {
    Duration::from_micros(bytes.saturating_mul(1_000_000) / per_second.max(1))
}

/// Waits, but not where space is short or the thread is to end.
fn rest(store: &Store, mut time: Duration) {
    while !time.is_zero() && !store.filled.stops() && !is_urgent(store) {
        let slice = time.min(SLICE);
        thread::sleep(slice);
        time -= slice;
    }
}

fn is_urgent(store: &Store) -> bool {
    let stats = store.stats();
    stats.dead_bytes * 100 >= stats.log_bytes * URGENT
}
