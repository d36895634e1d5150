//! The threads of an ordered store.
//!
//! * One flushes sealed memtables, and makes the next file of the log in advance.
//! * One makes the guide follow the runs.
//! * Two merge runs, each others than the other.
//! * One syncs the log while it fills, so that little is left for the write that fills it.
//!
//! A failure loses nothing. It is kept for `stats` and for writers that wait. The next signal is
//! the next try of a flush; a merge is tried again after a pause, which grows from failure to
//! failure.

use std::sync::Arc;
use std::time::Duration;

use super::store::Store;
use crate::Error;
use crate::kernel::threads::{Signal, Threads};

/// The pause after the first failure of a merge. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Starts the threads. [`stop`] ends them.
pub(super) fn start(store: &Arc<Store>, threads: &mut Threads) -> Result<(), Error> {
    let mut start =
        |name, run: fn(&Store)| threads.start(name, store, |store| &store.log.poison, run);
    start("koel-guide", tend)?;
    if store.log.poison.is_read_only() {
        return Ok(());
    }
    start("koel-flush", flush)?;
    start("koel-merge-1", merge)?;
    start("koel-merge-2", merge)?;
    start("koel-sync", |store| store.log.sync_when_due())?;
    store.threads.flush_due.send(Signal::Work);
    store.threads.merge_due.send(Signal::Work);
    Ok(())
}

/// Tells the threads to end.
pub(super) fn stop(store: &Store) {
    let threads = &store.threads;
    for wakeup in [&threads.flush_due, &threads.merge_due, &store.log.sync_due, &threads.guide_due]
    {
        wakeup.send(Signal::Stop);
    }
}

fn flush(store: &Store) {
    while store.threads.flush_due.wait() {
        // `stats` has the failure.
        drop(store.flush_sealed());
        store.prepare_log();
    }
}

fn tend(store: &Store) {
    while store.threads.guide_due.wait() {
        // After a failure reads ask more runs. The next change is the next try.
        drop(store.tend_guide());
    }
}

fn merge(store: &Store) {
    let (due, mut pause) = (&store.threads.merge_due, FIRST_PAUSE);
    while due.wait() {
        // After a failed write no merge succeeds.
        while !due.is_stopped() && store.log.poison.check().is_ok() {
            match store.merge_once() {
                Ok(true) => pause = FIRST_PAUSE,
                Ok(false) => break,
                Err(_) => {
                    due.wait_for_stop(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
