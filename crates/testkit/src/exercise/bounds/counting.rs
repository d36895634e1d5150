//! The bounds of counting filters: the largest count, batches, unions.

use koel::{CountingFilter, CountingView, KeyHash, Merge};

use super::{Bounds, assert_sound, changed, chosen, filling};

impl Bounds for CountingFilter {
    const SERIES: &'static [fn(&Self)] = &[
        |it| keys(it).iter().for_each(|key| drop(changed(it, |copy| largest_count(copy, key)))),
        |it| batches(it, &keys(it)),
        |it| unions(it, &keys(it)),
        |it| {
            changed(it, |copy| {
                copy.shrink_to_fit();
                assert!(keys(it).iter().all(|key| copy.count(key) >= it.count(key)), "too low");
            });
        },
    ];

    fn fill(&mut self) {
        let mut keys = filling().into_iter();
        while keys.next().is_some_and(|key| self.add(&key, 3).is_ok()) {}
    }

    fn empty(&mut self) {
        self.clear();
    }
}

fn keys(it: &CountingFilter) -> Vec<KeyHash> {
    chosen(&it.to_bytes(), it.trusts_hashes())
}

/// Raises the count of a key to the largest that all counts together allow, and lowers it again.
fn largest_count(copy: &mut CountingFilter, key: &KeyHash) {
    let (before, count, len) = (copy.clone(), copy.count(key), copy.len());
    let refused = |copy: &mut CountingFilter, times| {
        let before = copy.clone();
        assert!(copy.add(key, times).is_err());
        assert!(*copy == before || copy.is_growable(), "a refusal changed the filter");
        assert_eq!((copy.verify(), copy.len()), (Ok(()), before.len()));
    };
    assert_eq!(copy.add(key, 0), Ok(count));
    assert!(*copy == before, "nothing was added");
    if len > 0 {
        refused(copy, u64::MAX);
    }
    let room = u64::MAX - len;
    if copy.add(key, room).is_err() {
        assert!(*copy == before || copy.is_growable(), "a refusal changed the filter");
        return;
    }
    assert!(copy.count(key) >= room && copy.len() == u64::MAX);
    refused(copy, 1);
    assert_sound(copy);
    assert!(len == u64::MAX && count == 0 || copy.remove(key));
    if copy.len() < u64::MAX {
        assert!(copy.insert(key).is_ok_and(|count| count >= room.max(1)));
    }
}

/// Inserts and removes the keys one by one and as a batch.
fn batches(it: &CountingFilter, keys: &[KeyHash]) {
    let (mut singles, mut batch) = (it.clone(), it.clone());
    let one_by_one = keys.iter().try_for_each(|key| singles.insert(key).map(|_| ()));
    assert_eq!(batch.insert_many(keys), one_by_one);
    assert!(singles == batch, "a batch differs from single inserts");
    assert_sound(&batch);
    let mut removed = vec![false; keys.len()];
    let expected: Vec<bool> = keys.iter().map(|key| singles.remove(key)).collect();
    batch.remove_many(keys, &mut removed);
    assert!(removed == expected && singles == batch, "a batch differs from single removals");
    assert_sound(&batch);
}

/// Merges with itself and with an empty twin on either side.
fn unions(it: &CountingFilter, keys: &[KeyHash]) {
    let mut empty = it.clone();
    empty.clear();
    for counts in [Merge::Sum, Merge::Max] {
        for [into, from] in [[it, it], [it, &empty], [&empty, it]] {
            let bytes = from.to_bytes();
            let (mut union, mut other) = (into.clone(), into.clone());
            let merged = union.merge(from, counts);
            let view = CountingView::open(&bytes).expect("its own bytes");
            assert_eq!(merged, other.merge(&view, counts));
            assert!(union == other, "a view was merged to other bytes");
            if merged.is_ok() {
                assert!(keys.iter().all(|key| union.count(key) >= it.count(key)), "too low");
                assert_sound(&union);
            } else {
                assert!(union == *into, "a refusal changed the filter");
            }
        }
    }
}
