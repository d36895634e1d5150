//! The bounds of expiring filters: the shortest and the longest time, and the end of time.

use koel::{ExpiringFilter, ExpiringView, InsertError, KeyHash};

use super::{Bounds, assert_sound, changed, filling};

impl Bounds for ExpiringFilter {
    const SERIES: &'static [fn(&Self)] = &[
        |it| later(it, &[0, 1, it.step_ticks()]),
        |it| later(it, &[it.window(), it.window().saturating_add(it.step_ticks())]),
        |it| later(it, &[u64::MAX / 2, u64::MAX]),
        rebase,
        |it| {
            changed(it, |copy| {
                copy.shrink_to_fit();
                let is_kept = |key| !it.contains(key) || copy.contains(key);
                assert!(keys().iter().all(is_kept), "forgotten");
            });
        },
    ];

    fn fill(&mut self) {
        let keys = filling();
        let _full = self.insert_many(&keys, &mut vec![false; keys.len()]);
    }

    fn empty(&mut self) {
        self.clear();
    }
}

/// Some of those that fill it.
fn keys() -> Vec<KeyHash> {
    filling().into_iter().take(4).chain([0, u64::MAX].map(KeyHash::new)).collect()
}

/// Inserts and removes keys so many ticks after the present step began.
fn later(it: &ExpiringFilter, ticks: &[u64]) {
    for ticks in ticks {
        changed(it, |copy| {
            advance(copy, it.step_began().saturating_add(*ticks), &keys());
            stamp(copy, &keys());
        });
    }
}

/// Starts ticks again from either end.
fn rebase(it: &ExpiringFilter) {
    for tick in [0, u64::MAX] {
        changed(it, |copy| {
            copy.rebase(tick);
            assert!(keys().iter().all(|key| copy.age(key) == it.age(key)));
            assert_eq!((copy.len(), copy.step_began()), (it.len(), tick));
            stamp(copy, &keys());
        });
    }
}

/// Advances to a tick, which views and questions about later ticks foresaw.
fn advance(copy: &mut ExpiringFilter, now: u64, keys: &[KeyHash]) {
    let later: Vec<bool> = keys.iter().map(|key| copy.contains_at(key, now)).collect();
    let (len, later_len) = (copy.len(), copy.len_at(now));
    assert!(copy.advance_within(copy.step_began(), 0).is_ok());
    let expired = copy.advance(now);
    assert_eq!((copy.len(), expired), (later_len, len - later_len));
    assert!(keys.iter().zip(later).all(|(key, later)| copy.contains(key) == later));
    assert_eq!((copy.advance(0), copy.verify()), (0, Ok(())));
}

/// Inserts each key in every way, with the shortest and the longest time, and takes it out again.
fn stamp(copy: &mut ExpiringFilter, keys: &[KeyHash]) {
    let window = copy.window();
    for key in keys {
        let before = copy.clone();
        if let Some(longer) = window.checked_add(1) {
            let refused = copy.insert_with_ttl(key, longer);
            assert_eq!(refused, Err(InsertError::TimeToLive { ttl: longer, window }));
        }
        assert!(copy.insert_with_ttl(key, u64::MAX).is_err() || window == u64::MAX);
        assert!(*copy == before || window == u64::MAX, "a refusal changed the filter");
        let is_early = copy.insert_at(key, 0).is_ok();
        assert!(is_early || !copy.contains(key));
        let inserted = [
            copy.insert_with_ttl(key, 0).is_ok(),
            copy.insert_with_ttl(key, window).is_ok(),
            copy.insert_at(key, u64::MAX).is_ok(),
            copy.insert_unique(key).is_ok(),
            copy.insert(key).is_ok(),
        ];
        let is_in = inserted.contains(&true);
        assert!(copy.contains(key) == is_in, "an inserted key is not found");
        assert_eq!(copy.age(key).is_some(), is_in);
        assert_eq!(copy.verify(), Ok(()));
    }
    let bytes = copy.to_bytes();
    let view = ExpiringView::open(&bytes).expect("its own bytes");
    assert!(keys.iter().all(|key| view.age(key) == copy.age(key)));
    assert_sound(copy);
    let expected: Vec<bool> = keys.iter().map(|key| copy.contains(key)).collect();
    let mut removed = vec![false; keys.len()];
    copy.remove_many(keys, &mut removed);
    assert!(removed.iter().zip(expected).all(|(removed, was_in)| !removed || was_in));
    assert!(!keys.iter().any(|key| copy.contains(key)), "a removed key is found");
}
