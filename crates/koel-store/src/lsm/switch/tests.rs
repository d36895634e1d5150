//! A writer, a flush and a reader in every order, on one key. A memtable is one number here: the
//! sequence number of the only version in it, 0 if there is none.
//!
//! It depends on three orders: the reader loads the state before it asks for the visible sequence
//! number, the writer inserts before it publishes, and a range deletion is in the state, and noted,
//! before it is published.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::*;

#[derive(Clone)]
struct State {
    active: Arc<AtomicU64>,
    sealed: Option<Arc<AtomicU64>>,
    /// The version that the only run has.
    run: u64,
    /// The only range deletion.
    deleted: u64,
}

struct Store {
    state: Switch<State>,
    visible: AtomicU64,
    last_range_deletion: AtomicU64,
}

/// Runs calls of a store in a thread.
fn beside(store: &Arc<Store>, calls: fn(&Store)) -> thread::JoinHandle<()> {
    let store = store.clone();
    thread::spawn(move || calls(&store))
}

impl Store {
    fn new() -> Arc<Self> {
        let active = Arc::new(AtomicU64::new(0));
        Arc::new(Self {
            state: Switch::new(State { active, sealed: None, run: 0, deleted: 0 }),
            visible: AtomicU64::new(0),
            last_range_deletion: AtomicU64::new(0),
        })
    }

    fn delete_range(&self, sequence: u64) {
        self.state.update(|state| State { deleted: sequence, ..state.clone() });
        self.last_range_deletion.store(sequence, Ordering::Release);
        self.visible.store(sequence, Ordering::Release);
    }

    fn write(&self, sequence: u64) {
        self.state.load().active.store(sequence, Ordering::Release);
        self.visible.store(sequence, Ordering::Release);
    }

    fn seal(&self) {
        self.state.update(|state| State {
            active: Arc::new(AtomicU64::new(0)),
            sealed: Some(state.active.clone()),
            ..state.clone()
        });
    }

    /// Makes the sealed memtable the run. A merge of the two keeps the newer version alone.
    fn flush(&self) {
        self.state.update(|state| State {
            sealed: None,
            run: state.sealed.as_ref().map_or(state.run, |sealed| sealed.load(Ordering::Acquire)),
            ..state.clone()
        });
    }

    /// Returns the newest version that is visible and was not deleted, 0 if there is none.
    fn read(&self) -> u64 {
        let (state, visible) = loop {
            let (state, visible) = (self.state.load(), self.visible.load(Ordering::Acquire));
            if state.deleted >= self.last_range_deletion.load(Ordering::Acquire) {
                break (state, visible);
            }
            thread::yield_now();
        };
        let deleted = if state.deleted <= visible { state.deleted } else { 0 };
        let memtables = [Some(&state.active), state.sealed.as_ref()].into_iter().flatten();
        let versions = memtables.map(|memtable| memtable.load(Ordering::Acquire));
        let mut versions = versions.chain([state.run]).filter(|&version| version > 0);
        versions.find(|&version| version <= visible).filter(|&it| it > deleted).unwrap_or(0)
    }
}

#[test]
fn a_reader_sees_every_write_that_was_visible_before_whatever_is_switched() {
    loom::model(|| {
        let store = Store::new();
        store.write(1);
        let writer = beside(&store, |store| {
            store.seal();
            store.write(2);
        });
        let flusher = beside(&store, Store::flush);
        let before = store.visible.load(Ordering::Acquire);
        let found = store.read();
        assert!(found >= before, "a read misses version {before}, and finds {found}");
        writer.join().expect("the writer");
        flusher.join().expect("the flush");
        assert_eq!(store.read(), 2);
    });
}

/// A memtable has one version here, so the one after the deletion is in another memtable.
#[test]
fn a_reader_sees_a_range_deletion_as_soon_as_what_was_written_after_it() {
    loom::model(|| {
        let store = Store::new();
        store.write(1);
        let writer = beside(&store, |store| {
            store.delete_range(2);
            store.seal();
            store.write(3);
        });
        let before = store.visible.load(Ordering::Acquire);
        match store.read() {
            1 => assert!(before < 2, "a deleted version"),
            found => assert!(found == 0 && before < 3 || found == 3, "{found} after {before}"),
        }
        writer.join().expect("the writer");
        assert_eq!(store.read(), 3);
    });
}
