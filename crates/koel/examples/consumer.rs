//! Consumers of a queue that delivers some messages twice: each is handled once.
//!
//! Several threads share one filter. A message whose handling fails is forgotten again, so that
//! its second delivery is not taken for a copy. After a restart, the saved filter still knows what
//! was handled.
//!
//! `cargo run --release -p koel --example consumer`

use std::sync::atomic::{AtomicU64, Ordering};

use koel::{ConcurrentExpiringFilter, FullError, WhenFull};

/// Seconds.
const WINDOW: u64 = 600;
const MESSAGES: u64 = 200_000;

struct Consumer<'a> {
    seen: &'a ConcurrentExpiringFilter,
    handled: &'a AtomicU64,
    dropped: &'a AtomicU64,
}

impl Consumer<'_> {
    /// Handles a message unless it was handled within the last ten minutes.
    fn receive(&self, now: u64, message: u64) -> Result<(), FullError> {
        self.seen.advance(now);
        if !self.seen.insert_unique(&message)? {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if handle(message, now) {
            self.handled.fetch_add(1, Ordering::Relaxed);
        } else {
            self.seen.remove(&message); // it will be delivered again
        }
        Ok(())
    }
}

/// The work itself, which fails at the first delivery of one message in a thousand.
fn handle(message: u64, now: u64) -> bool {
    message % 1000 != 7 || now % 2 == 1
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The oldest messages may be forgotten early; that is better than to stop.
    let seen = ConcurrentExpiringFilter::builder(300_000, 1e-6)
        .window(WINDOW)
        .when_full(WhenFull::EvictOldest)
        .build()?;
    let (handled, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let consume = |first: u64| {
            let consumer = Consumer { seen: &seen, handled: &handled, dropped: &dropped };
            // Every message is delivered at second 1000, and again at second 1001.
            let mut deliveries = (first..2 * MESSAGES).step_by(2);
            deliveries.try_for_each(|number| {
                consumer.receive(1000 + number / MESSAGES, number % MESSAGES)
            })
        };
        let threads = [0, 1].map(|first| scope.spawn(move || consume(first)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let (handled, dropped) = (handled.into_inner(), dropped.into_inner());
    println!("{handled} handled, {dropped} dropped as copies, {} evicted", seen.evicted());
    println!("{:.1} bits for each key", 8.0 * seen.size_in_bytes() as f64 / 300_000.0);
    // Fewer than one in a million is dropped wrongly.
    assert!(handled + 3 > MESSAGES && handled <= MESSAGES);
    Ok(())
}
