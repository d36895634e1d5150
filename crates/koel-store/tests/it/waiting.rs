//! Reads go on while the disk does not answer a write.

use std::sync::Arc;
use std::thread;

use koel_store::{Durability, Error, LogOptions, LsmOptions};
use testkit::storage::MemoryFolder;

use crate::gated::{Gate, GatedFolder, gated};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Does `read` while `write` waits for each of these calls in turn.
fn read_beside(
    folder: &GatedFolder,
    write: impl Fn() -> Result<(), Error> + Sync,
    read: impl Fn() -> Outcome,
) -> Outcome {
    for held in ["write", "sync"] {
        let gate: &Gate = folder.hook();
        gate.hold(move |verb, _| verb == held);
        thread::scope(|scope| {
            let writer = scope.spawn(&write);
            gate.wait_for_held();
            let outcome = read();
            gate.release();
            writer.join().expect("no panic")?;
            outcome
        })?;
    }
    Ok(())
}

#[test]
fn reads_of_a_log_store_do_not_wait_for_a_write() -> Outcome {
    let folder = gated(MemoryFolder::new());
    let store = LogOptions::default().open_in(Arc::new(folder.clone()))?;
    store.put(b"a", b"1", Durability::Synced)?;
    let write = || store.put(b"b", b"2", Durability::Synced);
    read_beside(&folder, write, || {
        assert_eq!(store.get(b"a")?.as_deref(), Some(&b"1"[..]));
        assert!(store.contains(b"a")? && !store.contains(b"c")?);
        Ok(())
    })
}

#[test]
fn reads_of_an_ordered_store_do_not_wait_for_a_write() -> Outcome {
    let folder = gated(MemoryFolder::new());
    let store = LsmOptions::default().open_in(Arc::new(folder.clone()))?;
    store.put(b"a", b"1", Durability::Synced)?;
    let write = || store.put(b"b", b"2", Durability::Synced);
    read_beside(&folder, write, || {
        assert_eq!(store.get(b"a")?.as_deref(), Some(&b"1"[..]));
        assert!(store.contains(b"a")? && !store.contains(b"c")?);
        assert!(store.iter()?.next().is_some_and(|entry| entry.is_ok()));
        assert!(store.snapshot().get(b"a")?.is_some());
        Ok(())
    })
}
