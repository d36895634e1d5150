//! What stores tell of by `tracing`: each event once, with the names of its fields.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use koel_store::{Durability, Error, LogOptions, LsmOptions};
use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Verdict};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

/// The messages of all events, with the number of each and the names of its fields.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<BTreeMap<String, (usize, String)>>>);

/// The message of an event and the names of its other fields.
#[derive(Default)]
struct Fields(String, Vec<&'static str>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.0 = format!("{value:?}"),
            name => self.1.push(name),
        }
    }
}

impl Subscriber for Collected {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "koel_store"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut events = self.0.lock().unwrap();
        let entry = events.entry(fields.0).or_default();
        *entry = (entry.0 + 1, fields.1.join(" "));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Runs some steps, and returns the events of this thread.
fn events_of(steps: impl FnOnce() -> Result<(), Error>) -> BTreeMap<String, (usize, String)> {
    let collected = Collected::default();
    subscriber::with_default(collected.clone(), steps).unwrap();
    let events = collected.0.lock().unwrap();
    events.clone()
}

fn fields<'a>(events: &'a BTreeMap<String, (usize, String)>, message: &str) -> &'a str {
    &events.get(message).unwrap_or_else(|| panic!("no {message:?} in {events:?}")).1
}

/// Lets no file be synced, once it says so.
#[derive(Debug, Default)]
struct NoSync(Arc<AtomicBool>);

impl Hook for NoSync {
    fn before(&self, call: &Call) -> Verdict {
        let fails = call.verb == "sync" && self.0.load(Ordering::Relaxed);
        if fails { Verdict::Fail(ErrorKind::Other.into()) } else { Verdict::Pass }
    }
}

#[test]
fn an_ordered_store_tells_what_it_did() {
    let events = events_of(|| {
        let options = LsmOptions::default().memtable_bytes(1 << 10).background(false).guide(3, 1);
        let store = options.open_in(Arc::new(MemoryFolder::new()))?;
        (0..500_u32).try_for_each(|n| store.put(&n.to_le_bytes(), &[7; 20], Durability::None))?;
        store.close()
    });
    assert_eq!(fields(&events, "a store was opened"), "kind was_closed replayed removed is_torn");
    assert_eq!(fields(&events, "a memtable was flushed"), "log entries");
    assert_eq!(fields(&events, "runs were merged"), "runs bytes");
    assert_eq!(fields(&events, "a new guide"), "pairs follows");
    assert_eq!(events["a store was opened"].0, 1);
}

#[test]
fn a_store_tells_once_why_it_takes_no_more_writes() {
    let events = events_of(|| {
        let fails = NoSync::default();
        let is_broken = fails.0.clone();
        let folder = Hooked::with(MemoryFolder::new(), fails);
        let store = LogOptions::default().open_in(Arc::new(folder))?;
        store.put(b"ada", b"1815", Durability::None)?;
        is_broken.store(true, Ordering::Relaxed);
        assert!(store.put(b"ada", b"1815", Durability::Synced).is_err());
        assert!(store.put(b"ada", b"1815", Durability::Synced).is_err());
        Ok(())
    });
    assert_eq!(fields(&events, "the store takes no more writes"), "reason");
    assert_eq!(events["the store takes no more writes"].0, 1);
}
