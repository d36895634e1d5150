//! The bounds of maplets: the largest value, batches, new values for all pairs.

use koel::{InsertError, KeyHash, Maplet};

use super::{Bounds, assert_sound, changed, chosen, filling};
use crate::image::{self, word};

impl Bounds for Maplet {
    const SERIES: &'static [fn(&Self)] = &[
        |it| drop(changed(it, |copy| keys(it).iter().for_each(|key| largest_value(copy, key)))),
        |it| batches(it, &keys(it)),
        |it| drop(changed(it, relabel)),
        |it| {
            changed(it, |copy| {
                copy.shrink_to_fit();
                assert!(keys(it).iter().all(|key| !it.contains(key) || copy.contains(key)));
            });
        },
    ];

    fn fill(&mut self) {
        let (mut keys, largest) = ((0..).zip(filling()), largest(self));
        while keys.next().is_some_and(|(i, key)| self.insert(&key, i % 3 * (largest / 2)).is_ok()) {
        }
    }

    fn empty(&mut self) {
        self.clear();
    }
}

fn keys(it: &Maplet) -> Vec<KeyHash> {
    chosen(&it.to_bytes(), it.trusts_hashes())
}

fn largest(it: &Maplet) -> u64 {
    u64::MAX >> (64 - it.layout().value_bits())
}

/// Gives all pairs the largest value.
fn relabel(copy: &mut Maplet) {
    let (bytes, largest) = (copy.to_bytes(), largest(copy));
    let stashed = image::section(&bytes, "stashed keys").map(|record| word(record, 1));
    let values: Vec<u64> = stashed.chain(copy.entries().map(|entry| entry.value)).collect();
    let (before, len) = (copy.clone(), copy.len());
    assert!(copy.relabel(&values, largest + 1).is_err() && *copy == before);
    assert!(copy.relabel(&values, largest).is_ok_and(|changed| changed >= len));
    assert!(copy.len() == len && copy.entries().all(|entry| entry.value == largest));
    for key in keys(&before) {
        assert!(!before.contains(&key) || copy.get(&key).any(|value| value == largest));
    }
}

/// Inserts, replaces and removes a pair with the largest value, and refuses a larger one.
fn largest_value(copy: &mut Maplet, key: &KeyHash) {
    let (before, largest) = (copy.clone(), largest(copy));
    let is_wide = |error: &InsertError| matches!(error, InsertError::Value(_));
    assert!(copy.insert(key, largest + 1).is_err_and(|error| is_wide(&error)));
    assert!(copy.replace(key, 0, largest + 1).is_err() && !copy.remove(key, largest + 1));
    assert!(*copy == before, "a refusal changed the maplet");
    let len = copy.len();
    if copy.insert(key, largest).is_err() {
        assert!(*copy == before || copy.is_growable(), "a refusal changed the maplet");
        return;
    }
    assert!(copy.get(key).any(|value| value == largest) && copy.len() == len + 1);
    assert_eq!(copy.replace(key, largest, 0), Ok(true));
    assert!(copy.get(key).any(|value| value == 0));
    assert_eq!(copy.verify(), Ok(()));
    assert!(copy.remove(key, 0) && copy.len() == len);
    assert_eq!(copy.verify(), Ok(()));
}

/// Inserts, replaces and removes pairs one by one and as a batch.
fn batches(it: &Maplet, keys: &[KeyHash]) {
    let largest = largest(it);
    let (mut singles, mut batch) = (it.clone(), it.clone());
    let values = vec![largest; keys.len()];
    let one_by_one = keys.iter().try_for_each(|key| singles.insert(key, largest));
    assert_eq!(batch.insert_many(keys, &values), one_by_one);
    assert!(singles == batch, "a batch differs from single inserts");
    let (changes, mut done) = (vec![(largest, 0); keys.len()], vec![false; keys.len()]);
    let expected: Vec<_> = keys.iter().map(|key| singles.replace(key, largest, 0)).collect();
    assert_eq!(batch.replace_many(keys, &changes, &mut done), Ok(()));
    assert!(done.iter().map(|&done| Ok(done)).eq(expected) && singles == batch);
    assert_sound(&batch);
    let expected: Vec<bool> = keys.iter().map(|key| singles.remove(key, 0)).collect();
    batch.remove_many(keys, &vec![0; keys.len()], &mut done);
    assert!(done == expected && singles == batch, "a batch differs from single removals");
    assert_sound(&batch);
}
