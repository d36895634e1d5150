//! A writer, a flush and a reader in every order, on one key. A memtable is one number here: the
//! sequence number of the only version in it, 0 if there is none.
//!
//! It depends on two orders: the reader loads the state before it asks for the visible sequence
//! number, and the writer inserts before it publishes.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::*;

#[derive(Clone)]
struct State {
    active: Arc<AtomicU64>,
    sealed: Option<Arc<AtomicU64>>,
    /// The version that the only run has.
    run: u64,
}

struct Store {
    state: Switch<State>,
    visible: AtomicU64,
}

impl Store {
    fn write(&self, sequence: u64) {
        self.state.load().active.store(sequence, Ordering::Release);
        self.visible.store(sequence, Ordering::Release);
    }

    fn seal(&self) {
        self.state.update(|state| State {
            active: Arc::new(AtomicU64::new(0)),
            sealed: Some(state.active.clone()),
            run: state.run,
        });
    }

    /// Makes the sealed memtable the run. A merge of the two keeps the newer version alone.
    fn flush(&self) {
        self.state.update(|state| State {
            active: state.active.clone(),
            sealed: None,
            run: state.sealed.as_ref().map_or(state.run, |sealed| sealed.load(Ordering::Acquire)),
        });
    }

    /// Returns the newest version that is visible, 0 if there is none.
    fn read(&self) -> u64 {
        let state = self.state.load();
        let visible = self.visible.load(Ordering::Acquire);
        let memtables = [Some(&state.active), state.sealed.as_ref()].into_iter().flatten();
        let versions = memtables.map(|memtable| memtable.load(Ordering::Acquire));
        let mut versions = versions.chain([state.run]).filter(|&version| version > 0);
        versions.find(|&version| version <= visible).unwrap_or(0)
    }
}

#[test]
fn a_reader_sees_every_write_that_was_visible_before_whatever_is_switched() {
    loom::model(|| {
        let state = State { active: Arc::new(AtomicU64::new(0)), sealed: None, run: 0 };
        let store = Arc::new(Store { state: Switch::new(state), visible: AtomicU64::new(0) });
        store.write(1);
        let writer = {
            let store = store.clone();
            thread::spawn(move || {
                store.seal();
                store.write(2);
            })
        };
        let flusher = {
            let store = store.clone();
            thread::spawn(move || store.flush())
        };
        let before = store.visible.load(Ordering::Acquire);
        let found = store.read();
        assert!(found >= before, "a read misses version {before}, and finds {found}");
        writer.join().expect("the writer");
        flusher.join().expect("the flush");
        assert_eq!(store.read(), 2);
    });
}
