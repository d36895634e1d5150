//! The expiring filter that threads share: it answers as a single one, and loses nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use koel::{BuildError, ConcurrentExpiringFilter, ExpiringFilter, InsertError, WhenFull};
use testkit::keys;
use testkit::keys::at;

#[test]
fn it_answers_as_a_single_filter_does() {
    let builder = ConcurrentExpiringFilter::builder(30_000, 1e-6).window(240).seed(5);
    let shared = builder.when_full(WhenFull::EvictOldest).build().unwrap();
    let mut single = ExpiringFilter::builder(30_000, 1e-6).window(240).seed(5).build().unwrap();
    assert!(shared.is_empty() && shared.hasher() == single.hasher());
    assert_eq!((shared.window(), shared.capacity()), (single.window(), 30_000));
    for (i, hash) in (0..).zip(keys::hashes(4, 100_000)) {
        assert_eq!(shared.advance(i / 125), single.advance(i / 125));
        let key = at((hash % 50_021).wrapping_mul(0x0123_4567_89ab_cdef));
        let both = match hash >> 61 {
            0 => (shared.remove(&key), single.remove(&key)),
            1 => (shared.insert(&key).unwrap(), single.insert(&key).unwrap()),
            2 => (
                shared.insert_with_ttl(&key, 99).unwrap(),
                single.insert_with_ttl(&key, 99).unwrap(),
            ),
            3 => (shared.contains(&key), single.contains(&key)),
            _ => (shared.insert_unique(&key).unwrap(), single.insert_unique(&key).unwrap()),
        };
        assert!(both.0 == both.1 && shared.age(&key) == single.age(&key));
    }
    assert_eq!(
        (shared.len(), shared.evicted(), shared.youngest_evicted()),
        (single.len(), 0, None)
    );
    assert!(shared.false_positive_rate() <= 1e-6 && shared.when_full() == WhenFull::EvictOldest);
    let ttl = InsertError::TimeToLive { ttl: 241, window: 240 };
    assert_eq!(shared.insert_with_ttl("late", 241), Err(ttl));
    shared.rebase(7);
    assert_eq!((shared.advance(16), shared.is_empty()), (0, false));
    shared.clear();
    assert!(shared.is_empty());
}

#[test]
fn every_shard_takes_its_share_of_the_capacity() {
    for (seed, capacity) in [(1, 100), (2, 40_000), (3, 20_000), (4, 300_000)] {
        let shared = ConcurrentExpiringFilter::builder(capacity, 0.001).window(24).build().unwrap();
        assert!(keys::hashes(seed, capacity).all(|hash| shared.insert(&hash).is_ok()));
        let bits = 8.0 * shared.size_in_bytes() as f64 / capacity as f64;
        assert!(capacity < 300_000 || bits < 21.0, "{bits}");
    }
    let none = ConcurrentExpiringFilter::builder(9, 0.001).build().unwrap_err();
    assert_eq!(none, BuildError::Window { window: 0, steps: 24 });
}

#[test]
fn of_threads_that_insert_one_key_at_once_one_is_the_first() {
    let seen = ConcurrentExpiringFilter::builder(20_000, 1e-8).window(1000).build().unwrap();
    let firsts = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (seen, firsts) = (&seen, &firsts);
            scope.spawn(move || {
                for key in 0..20_000_u64 {
                    let new = seen.insert_unique(&key).unwrap();
                    firsts.fetch_add(new.into(), Ordering::Relaxed);
                    if key % 100 == thread {
                        seen.advance(key / 100);
                    }
                }
            });
        }
    });
    assert_eq!((firsts.into_inner(), seen.len()), (20_000, 20_000));
}
