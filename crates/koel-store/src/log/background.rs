//! The thread that compacts a store: it waits until a segment is full, looks whether something is worth it, and does it at a rate that leaves the disk to others.

use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::pick::Policy;
use super::store::{Call, Store, lock};

/// Bytes between two looks at the order to stop and at the rate.
const STEP: u64 = 1 << 20;
/// Above this share of dead bytes, in percent, the rate has no limit: space matters more then.
const URGENT: u64 = 27;

/// Starts the thread. It ends after [`Call::Stop`].
pub(super) fn start(store: Arc<Store>, bytes_per_second: u64) -> std::io::Result<JoinHandle<()>> {
    let name = "koel-compaction".to_owned();
    thread::Builder::new().name(name).spawn(move || run(&store, bytes_per_second))
}

fn run(store: &Store, bytes_per_second: u64) {
    let mut since = 0;
    let mut pace = |store: &Store, bytes: u64| {
        since += bytes;
        if since < STEP {
            return true;
        }
        let stats = store.stats();
        if stats.dead_bytes * 100 < stats.log_bytes * URGENT {
            let micros = since.saturating_mul(1_000_000) / bytes_per_second.max(1);
            thread::sleep(Duration::from_micros(micros.min(100_000)));
        }
        since = 0;
        *lock(&store.bell.state) != Call::Stop
    };
    while wait(store) {
        // A failure changes nothing that was written; it is kept for `stats`, and the next sealed segment is the next chance.
        let failed = store.compact(Policy::BACKGROUND, &mut pace).err();
        *lock(&store.compaction_failed) = failed.map(|error| error.to_string());
    }
}

/// Waits for an order: false to end.
fn wait(store: &Store) -> bool {
    let mut state = lock(&store.bell.state);
    while *state == Call::Nothing {
        state = store.bell.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let go_on = *state == Call::Look;
    if go_on {
        *state = Call::Nothing;
    }
    go_on
}
