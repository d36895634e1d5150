//! Sessions of a web service: written without waiting, synced now and then, deleted in batches, and
//! all there after a restart.

use koel_store::{Batch, Durability, Error, LogOptions};

fn session(i: u32) -> (String, String) {
    (format!("session/{i}"), format!("user {} since 2026-01-{:02}", i % 997, i % 28 + 1))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let open = || LogOptions::default().segment_bytes(1 << 20).open(folder.path());

    let store = open()?;
    for i in 0..50_000 {
        let (key, value) = session(i);
        store.put(key.as_bytes(), value.as_bytes(), Durability::None)?;
    }
    // From here on not even a power failure loses one of them.
    store.sync()?;

    // The first half expires, all at once or, should the machine stop in between, not at all.
    let mut batch = Batch::new();
    for i in 0..25_000 {
        batch.delete(session(i).0.as_bytes())?;
        if batch.len() == 1000 {
            store.write(&batch, Durability::Synced)?;
            batch.clear();
        }
    }
    let before = store.stats();
    let compacted = store.compact()?;
    assert!(store.stats().log_bytes < before.log_bytes * 2 / 3, "{compacted:?}");
    store.close()?;

    let store = open()?;
    assert!(store.open_report().was_closed);
    assert_eq!(store.stats().keys, 25_000);
    assert_eq!(store.get(session(7).0.as_bytes())?, None);
    let (key, value) = session(30_000);
    assert_eq!(store.get(key.as_bytes())?, Some(value.into_bytes()));
    let users: Result<usize, Error> = store.iter().try_fold(0, |count, pair| {
        let (_, value) = pair?;
        Ok(count + usize::from(value.starts_with(b"user 5 ")))
    });
    println!("{} sessions, {} of them of user 5", store.stats().keys, users?);
    let verified = store.verify(|_, _| {})?;
    assert!(verified.damages.is_empty() && verified.live == Some(25_000));
    Ok(())
}
