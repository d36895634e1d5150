//! An expiring filter that grows: no key is refused or forgotten, at the promised rate and load.

use koel::{BuildError, ExpiringFilter, ExpiringView, WhenFull};
use testkit::keys;
use testkit::keys::{all_at, at};

fn growing(capacity: u64, rate: f64, window: u64) -> ExpiringFilter {
    ExpiringFilter::builder(capacity, rate).window(window).grow_from(1).build().unwrap()
}

#[test]
fn it_starts_small_and_keeps_rate_and_load_while_a_window_brings_more_and_more_keys() {
    let (capacity, rate) = (268_800, 0.001);
    let mut seen = growing(capacity, rate, 24);
    assert!(seen.is_growable() && seen.has_grown() && seen.size_in_bytes() < 30_000);
    let mut stream = keys::hashes(3, u64::MAX);
    let mut recent: Vec<Vec<u64>> = Vec::new();
    for step in 0..80 {
        seen.advance(step);
        // From 1000 keys in a window to the capacity, in steps that double.
        let keys: Vec<u64> = stream.by_ref().take(42 << (step / 7).min(8)).collect();
        let mut new = vec![false; keys.len()];
        seen.insert_many(&all_at(&keys), &mut new).unwrap();
        assert!(seen.false_positive_rate() <= rate, "{step}: {}", seen.false_positive_rate());
        recent.push(keys);
        let kept = recent.iter().rev().take(25).flatten();
        assert!(kept.clone().all(|&hash| seen.contains(&at(hash))), "{step}");
        let live = seen.len() as f64;
        assert!(live >= 0.995 * kept.count() as f64);
    }
    assert!(seen.len() as f64 > 0.97 * capacity as f64 && seen.evicted() == 0);
    assert!(seen.load_factor() > 0.88, "{seen:?}");
    assert!(seen.bits_per_key() < 26.0, "{}", seen.bits_per_key());
    assert_eq!(seen.verify(), Ok(()));
    // The keys of each step live on, and the table stays as large as it is.
    let (before, view) = (seen.size_in_bytes(), seen.to_bytes());
    assert_eq!(ExpiringView::open(&view).unwrap().len(), seen.len());
    seen.advance(200);
    assert!(seen.is_empty() && seen.size_in_bytes() == before);
    seen.shrink_to_fit();
    assert!(seen.size_in_bytes() < 30_000 && seen.verify() == Ok(()));
}

#[test]
fn single_keys_make_the_bytes_of_batches_and_expired_keys_make_no_growth() {
    let (mut single, mut batched) = (growing(100_000, 0.01, 240), growing(100_000, 0.01, 240));
    let stream: Vec<u64> = keys::hashes(8, 60_000).collect();
    for (step, keys) in (0..).zip(stream.chunks(500)) {
        single.advance(10 * step);
        batched.advance(10 * step);
        let mut new = vec![false; keys.len()];
        batched.insert_many(&all_at(keys), &mut new).unwrap();
        for &hash in keys {
            assert!(single.insert(&at(hash)).is_ok());
        }
        assert!(single == batched, "{step}");
    }
    // 12,500 keys are live at a time.
    assert!(single.slots() < 18_000, "{single:?}");
}

/// The old entries have lost bits to growth. Keys that take such an entry renew it, and in a window
/// all are new and whole again.
#[test]
fn the_rate_recovers_a_window_after_growth() {
    let mut seen = growing(10_000_000, 0.01, 24);
    let mut stream = keys::hashes(5, u64::MAX);
    let mut rates = Vec::new();
    for step in 0..50 {
        seen.advance(step);
        // A burst in the first step.
        let each = if step == 0 { 150_000 } else { 5000 };
        stream.by_ref().take(each).for_each(|hash| assert!(seen.insert(&at(hash)).is_ok()));
        rates.push(seen.false_positive_rate() / seen.len() as f64);
    }
    assert!(rates[49] < 0.7 * rates[0], "{} {}", rates[0], rates[49]);
    assert_eq!(seen.verify(), Ok(()));
}

#[test]
fn it_never_evicts_while_it_can_grow_and_remembers_what_to_do_then() {
    let builder = ExpiringFilter::builder(1, 0.01).window(9).when_full(WhenFull::EvictOldest);
    let mut seen = builder.grow_from(100_000).build().unwrap();
    assert!(keys::hashes(1, 300_000).all(|hash| seen.insert(&at(hash)).is_ok()));
    assert!(keys::hashes(1, 300_000).all(|hash| seen.contains(&at(hash))));
    assert_eq!((seen.evicted(), seen.when_full()), (0, WhenFull::EvictOldest));
}

#[test]
fn what_cannot_grow_is_refused() {
    let too_large = ExpiringFilter::builder(u64::MAX, 0.001).window(9).grow_from(1).build();
    assert!(matches!(too_large, Err(BuildError::TooLarge { .. })), "{too_large:?}");
    let too_precise = ExpiringFilter::builder(1000, 1e-12).window(9).grow_from(1).build();
    assert!(matches!(too_precise, Err(BuildError::TooPrecise { .. })), "{too_precise:?}");
}
