//! Consumers of a queue that delivers some messages twice: each is handled once.
//!
//! Several threads share shards, each an expiring filter behind a lock. The hash of a message says
//! its shard, and is its key there. A message whose handling fails is forgotten again, so that its
//! second delivery is not taken for a copy.
//!
//! What it costs: a lock for each message, for which a thread waits if another one uses the same
//! shard; and room in each shard for five standard deviations more than its share, because the
//! messages are divided by chance. Each shard has a time and, if saved, a file of its own.
//!
//! `cargo run --release -p koel --example consumer`

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use koel::{BuildError, ExpiringFilter, FullError, KeyHasher, WhenFull};

/// Seconds.
const WINDOW: u64 = 600;
const MESSAGES: u64 = 200_000;
/// More than threads, so that two seldom want the same one.
const SHARDS: u64 = 16;

struct Seen {
    shards: Vec<Mutex<ExpiringFilter>>,
    hasher: KeyHasher,
}

impl Seen {
    fn new(capacity: u64) -> Result<Self, BuildError> {
        let share = capacity.div_ceil(SHARDS);
        let builder = ExpiringFilter::builder(share + 5 * share.isqrt(), 1e-6)
            .window(WINDOW)
            // The oldest messages may be forgotten early; that is better than to stop.
            .when_full(WhenFull::EvictOldest);
        let shards = (0..SHARDS).map(|_| Ok(Mutex::new(builder.build()?)));
        Ok(Self {
            shards: shards.collect::<Result<_, BuildError>>()?,
            hasher: KeyHasher::default(),
        })
    }

    /// Handles a message unless it was handled within the window. True if it did.
    fn receive(&self, now: u64, message: u64) -> Result<bool, FullError> {
        let hash = self.hasher.hash(&message);
        let shard = &self.shards[usize::try_from(hash.get() % SHARDS).expect("a small number")];
        let locked = || shard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut filter = locked();
        filter.advance(now);
        let is_new = filter.insert_unique(&hash)?;
        drop(filter);
        if is_new && !handle(message, now) {
            locked().remove(&hash); // it will be delivered again
            return Ok(false);
        }
        Ok(is_new)
    }
}

/// The work itself, which fails at the first delivery of one message in a thousand.
fn handle(message: u64, now: u64) -> bool {
    message % 1000 != 7 || now % 2 == 1
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (seen, handled) = (Seen::new(300_000)?, AtomicU64::new(0));
    std::thread::scope(|scope| {
        let consume = |first: u64| {
            // Every message is delivered at second 1000, and again at second 1001.
            let mut deliveries = (first..2 * MESSAGES).step_by(2);
            deliveries.try_for_each(|number| {
                let is_handled = seen.receive(1000 + number / MESSAGES, number % MESSAGES)?;
                handled.fetch_add(u64::from(is_handled), Ordering::Relaxed);
                Ok::<(), FullError>(())
            })
        };
        let threads = [0, 1].map(|first| scope.spawn(move || consume(first)));
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let (handled, shards) = (handled.into_inner(), seen.shards.into_iter());
    let bytes: usize = shards.map(|it| it.into_inner().map_or(0, |it| it.size_in_bytes())).sum();
    println!("{handled} of {MESSAGES} handled; {:.1} bits a key", 8.0 * bytes as f64 / 300_000.0);
    // Fewer than one in a million is dropped wrongly.
    assert!(handled + 3 > MESSAGES && handled <= MESSAGES);
    Ok(())
}
