//! The expiring filter that threads share: it answers as a single one, and loses nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use koel::{
    BuildError, ConcurrentExpiringFilter, ConvertError, ExpiringFilter, InsertError, WhenFull,
};
use testkit::keys;
use testkit::keys::{all_at, at};

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
        assert!(capacity < 300_000 || bits < 21.2, "{bits}");
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

#[test]
fn batches_answer_as_single_calls_do() {
    let build =
        || ConcurrentExpiringFilter::builder(70_000, 1e-4).window(240).steps(6).build().unwrap();
    let (batched, single) = (build(), build());
    for (round, len) in (0_u64..).zip([0, 1, 1023, 1024, 1025, 3000, 5000, 4000, 2500]) {
        assert_eq!(batched.advance(70 * round), single.advance(70 * round));
        // Some keys come twice in a batch, and some are in.
        let hashes = keys::hashes(round / 3, len).map(|hash| hash & !(0xff << 20));
        let keys = all_at(&hashes.collect::<Vec<_>>());
        let keys = [&keys[..], &keys[..keys.len() / 3]].concat();
        let mut answers = vec![true; keys.len()];
        let is_same = |answers: &[bool], one: &dyn Fn(&koel::KeyHash) -> bool| {
            assert!(keys.iter().zip(answers).all(|(key, answer)| *answer == one(key)), "{round}");
        };
        if round % 2 == 0 {
            batched.insert_many(&keys, &mut answers).unwrap();
            is_same(&answers, &|key| single.insert(key).unwrap());
        } else {
            batched.insert_unique_many(&keys, &mut answers).unwrap();
            is_same(&answers, &|key| single.insert_unique(key).unwrap());
        }
        let mut ages = vec![Some(77); keys.len()];
        batched.age_many(&keys, &mut ages);
        assert!(keys.iter().zip(&ages).all(|(key, age)| *age == single.age(key)));
        let gone = &keys[..keys.len() / 5];
        batched.remove_many(gone, &mut answers[..gone.len()]);
        is_same(&answers[..gone.len()], &|key| single.remove(key));
        batched.contains_many(&keys, &mut answers);
        is_same(&answers, &|key| single.contains(key));
        assert!(batched.snapshot().unwrap() == single.snapshot().unwrap(), "{round}");
    }
    assert!(batched.len() > 3000);
}

#[test]
fn a_snapshot_answers_alike_and_becomes_the_same_shared_filter() {
    let builder = ConcurrentExpiringFilter::builder(100_000, 1e-3).window(24).seed(8);
    let shared = builder.when_full(WhenFull::EvictOldest).build().unwrap();
    let stream: Vec<u64> = keys::hashes(9, 400_000).collect();
    for (step, hashes) in (0..).zip(stream.chunks(5500)) {
        shared.advance(step);
        shared.insert_many(&all_at(hashes), &mut vec![false; hashes.len()]).unwrap();
    }
    let plain = shared.snapshot().unwrap();
    assert_eq!((plain.verify(), plain.capacity()), (Ok(()), 100_000));
    let figures = (plain.len(), plain.evicted(), plain.youngest_evicted(), plain.step_began());
    assert!(figures.0 > 90_000 && figures.1 > 1000, "{figures:?}");
    let plain = ExpiringFilter::from_bytes(&plain.to_bytes()).unwrap();
    let back = ConcurrentExpiringFilter::try_from(plain.clone()).unwrap();
    for shared in [&shared, &back] {
        let same = (shared.len(), shared.evicted(), shared.youngest_evicted(), shared.step_began());
        assert_eq!(same, figures);
        assert!(stream.iter().all(|hash| shared.age(&at(*hash)) == plain.age(&at(*hash))));
        assert_eq!((shared.capacity(), shared.when_full()), (100_000, WhenFull::EvictOldest));
        assert_eq!((shared.steps(), shared.step_ticks(), shared.hasher()), (24, 1, plain.hasher()));
    }
    assert!(back.snapshot().unwrap() == plain);
    // All go on alike.
    for step in 80..140 {
        assert_eq!(shared.advance(step), back.advance(step));
        for hash in keys::hashes(step, 2000) {
            assert_eq!(shared.insert(&at(hash)), back.insert(&at(hash)));
        }
    }
    assert_eq!((back.len(), back.evicted()), (shared.len(), shared.evicted()));
}

#[test]
fn filters_of_any_number_of_segments_are_shared_and_those_that_grow_are_not() {
    for (capacity, steps) in [(10, 24), (1_000_000, 6), (3_000_000, 1)] {
        let builder = ExpiringFilter::builder(capacity, 0.01).window(60).steps(steps);
        let mut plain = builder.build().unwrap();
        assert!(keys::hashes(1, capacity / 20 + 5).all(|hash| plain.insert(&at(hash)).is_ok()));
        let shared = ConcurrentExpiringFilter::try_from(plain.clone()).unwrap();
        assert!(keys::hashes(1, capacity / 20 + 5).all(|hash| shared.contains(&at(hash))));
        let buckets = |filter: &ExpiringFilter| filter.to_bytes()[192..].to_vec();
        assert!(buckets(&shared.snapshot().unwrap()) == buckets(&plain));
    }
    let growing = ExpiringFilter::builder(9, 0.01).window(60).grow_from(9).build().unwrap();
    assert_eq!(ConcurrentExpiringFilter::try_from(growing).unwrap_err(), ConvertError::Grown);
}

#[test]
fn a_batch_that_finds_no_room_says_which_keys_are_in() {
    let shared = ConcurrentExpiringFilter::builder(40_000, 0.001).window(24).build().unwrap();
    let hashes: Vec<u64> = keys::hashes(2, 60_000).collect();
    let (keys, mut added) = (all_at(&hashes), vec![true; 60_000]);
    assert!(shared.insert_many(&keys, &mut added).is_err());
    let count = added.iter().filter(|&&added| added).count() as u64;
    // Some are taken for keys that are in.
    assert!(count == shared.len() && count > 38_000, "{count}");
    assert!(keys.iter().zip(&added).all(|(key, added)| !added || shared.contains(key)));
    assert!(added.iter().rposition(|&added| added).unwrap() < 60_000 - 1024);
}

/// A snapshot is of one moment: each thread's keys are in up to some key, and none after it.
#[test]
fn threads_go_on_while_snapshots_are_taken() {
    let seen = ConcurrentExpiringFilter::builder(300_000, 1e-8).window(1_000_000).build().unwrap();
    let key = |thread: u64, number: u64| thread << 32 | number;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let seen = &seen;
            scope.spawn(move || {
                for number in 0..20_000 {
                    assert_eq!(seen.insert(&key(thread, number)), Ok(true));
                    if number % 64 == 0 {
                        seen.advance(number);
                    }
                }
            });
        }
        for _ in 0..5 {
            let copy = seen.snapshot().unwrap();
            assert_eq!(copy.verify(), Ok(()));
            for thread in 0..2 {
                let is_in = |number: &u64| copy.contains(&key(thread, *number));
                let first = (0..20_000).take_while(is_in).count() as u64;
                assert!(!(first + 1..20_000).any(|number| is_in(&number)), "{thread} {first}");
            }
        }
    });
    assert_eq!(seen.len(), 40_000);
}
