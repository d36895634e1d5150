//! The threads of an ordered store.
//!
//! * One flushes sealed memtables, and builds the guide when reads miss it.
//! * Two merge runs, each others than the other.
//! * One syncs the log while it fills, so that little is left for the write that fills it.
//!
//! A failure loses nothing. It is kept for `stats` and for writers that wait, and the next signal is
//! the next try.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::store::Store;
use crate::Error;
use crate::kernel::lock::lock;
use crate::kernel::wakeup::Signal;

/// Starts the threads. [`stop`] ends them.
pub(super) fn start(store: &Arc<Store>, threads: &mut Vec<JoinHandle<()>>) -> io::Result<()> {
    let mut spawn = |name: &str, run: fn(&Store)| {
        let (store, builder) = (store.clone(), thread::Builder::new().name(name.to_owned()));
        builder.spawn(move || run(&store)).map(|thread| threads.push(thread))
    };
    spawn("koel-flush", flush)?;
    if store.poison.is_read_only() {
        return Ok(());
    }
    spawn("koel-merge-1", merge)?;
    spawn("koel-merge-2", merge)?;
    spawn("koel-sync", sync)?;
    store.threads.flush_due.send(Signal::Work);
    store.threads.merge_due.send(Signal::Work);
    Ok(())
}

/// Tells the threads to end.
pub(super) fn stop(store: &Store) {
    let threads = &store.threads;
    for wakeup in [&threads.flush_due, &threads.merge_due, &threads.sync_due] {
        wakeup.send(Signal::Stop);
    }
}

fn flush(store: &Store) {
    let threads = &store.threads;
    while threads.flush_due.wait() {
        if !store.poison.is_read_only() {
            note(&threads.flush_failure, &store.flush_sealed().map(drop));
        }
        if threads.guide_due.swap(false, Ordering::Relaxed) {
            // Without a guide reads are slower, and ask for it again.
            drop(store.build_guide(true));
        }
    }
}

fn merge(store: &Store) {
    let threads = &store.threads;
    while threads.merge_due.wait() {
        let merged = loop {
            match store.merge_once() {
                Ok(true) if !threads.merge_due.is_stopped() => {}
                ended => break ended.map(drop),
            }
        };
        if !threads.merge_due.is_stopped() {
            note(&threads.merge_failure, &merged);
        }
    }
}

fn sync(store: &Store) {
    while store.threads.sync_due.wait() {
        // The next write returns the failure.
        drop(store.sync());
    }
}

fn note(failure: &Mutex<Option<String>>, result: &Result<(), Error>) {
    *lock(failure) = result.as_ref().err().map(Error::reason);
}
