//! Invariants that callers cannot see: each entry is in one of its buckets, and each tag matches
//! its entry.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::address::mix;
use testkit::keys::hashes;

type Table<const HASHES: usize, const SLOTS: usize> = Buckets<u64, (), HASHES, SLOTS>;

fn entry(hash: u64) -> Stored<u64, ()> {
    Stored { hash: mix(hash), key: hash, value: () }
}

fn find<const HASHES: usize, const SLOTS: usize>(
    table: &Table<HASHES, SLOTS>,
    hash: u64,
) -> Option<usize> {
    table.find(mix(hash), |&key| key == hash)
}

/// Checks that each slot is empty or holds an entry that belongs to the bucket, with its tag, and
/// that the overflow has no empty slot.
fn assert_invariants<const HASHES: usize, const SLOTS: usize>(table: &Table<HASHES, SLOTS>) {
    let tags = table.tags.as_flattened();
    assert_eq!(tags.len(), table.slots());
    let entries = table.stored.iter().chain(&table.overflow).flatten();
    assert_eq!(entries.count(), table.len);
    for (position, stored) in table.stored.iter().enumerate() {
        let Some(stored) = stored else {
            assert_eq!(tags[position], 0);
            continue;
        };
        assert_eq!(tags[position], tag(stored.hash));
        assert!(table.choices(stored.hash).contains(&number(position / SLOTS)));
    }
    assert!(table.overflow.iter().all(Option::is_some));
}

/// Fills `load` per mille of the slots, then removes and inserts as many entries again.
fn churn<const HASHES: usize, const SLOTS: usize>(slots: usize, load: usize) {
    let mut table = Table::<HASHES, SLOTS>::new(slots / SLOTS).unwrap();
    let count = slots * load / 1000;
    let keys: Vec<_> = hashes(1, 2 * count as u64).collect();
    for &key in &keys[..count] {
        let position = table.insert(entry(key)).unwrap();
        assert_eq!(find(&table, key), Some(position));
    }
    assert_invariants(&table);
    for (&old, &new) in keys[..count].iter().zip(&keys[count..]) {
        let position = find(&table, old).unwrap();
        assert_eq!(table.remove(position).map(|stored| stored.key), Some(old));
        table.insert(entry(new)).unwrap();
    }
    assert_invariants(&table);
    assert_eq!((table.slots(), table.overflow.len()), (slots, 0));
    assert!(keys[..count].iter().all(|&key| find(&table, key).is_none()));
    assert!(keys[count..].iter().all(|&key| find(&table, key).is_some()));
}

#[test]
fn every_entry_is_in_one_of_its_buckets_at_high_loads_and_after_churn() {
    churn::<2, 1>(1 << 14, 400);
    churn::<3, 1>(1 << 14, 880);
    churn::<4, 1>(1 << 14, 940);
    churn::<2, 2>(1 << 14, 850);
    churn::<2, 4>(1 << 14, 950);
    churn::<2, 8>(1 << 14, 980);
    churn::<4, 2>(1 << 14, 980);
}

#[test]
fn growing_from_nothing_and_shrinking_keep_the_invariants() {
    let mut table = Table::<2, 4>::default();
    for (count, key) in (1..).zip(hashes(2, 5000)) {
        table.insert(entry(key)).unwrap();
        assert_eq!(table.len, count);
        if count < 100 || count % 100 == 0 {
            assert_invariants(&table);
        }
    }
    for key in hashes(2, 4900) {
        table.remove(find(&table, key).unwrap());
    }
    table.shrink();
    assert_invariants(&table);
    assert!(table.slots() <= 108);
    table.clear();
    assert_invariants(&table);
}

#[test]
fn buckets_for_returns_the_fewest_buckets_with_the_capacity() {
    fn assert_for<const HASHES: usize, const SLOTS: usize>() {
        for entries in (0..3000).chain([999_999, 1 << 31]) {
            let buckets = Table::<HASHES, SLOTS>::buckets_for(entries);
            let capacity = |buckets: usize| buckets * SLOTS * Table::<HASHES, SLOTS>::LOAD / 1000;
            assert!(capacity(buckets) >= entries);
            assert!(buckets == 0 || capacity(buckets - 1) < entries);
        }
    }
    assert_for::<2, 1>();
    assert_for::<2, 4>();
    assert_for::<3, 1>();
    for buckets in [1, 7, 999, 1000, 12_345] {
        let table = Table::<2, 4>::new(buckets).unwrap();
        assert_eq!(table.capacity(), buckets * 4 * 950 / 1000);
    }
}

#[test]
fn two_entries_have_equal_tags_once_in_254_times() {
    let tags = |seed| hashes(seed, 1 << 20).map(|hash| tag(mix(hash)));
    let equal = tags(3).zip(tags(4)).filter(|(one, other)| one == other).count();
    let expected = f64::from(1 << 20) / 254.0;
    assert!((equal as f64 - expected).abs() < 5.0 * expected.sqrt(), "{equal}");
    assert!(tags(3).all(|tag| tag != 0));
}
