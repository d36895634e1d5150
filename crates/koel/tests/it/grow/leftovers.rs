//! What growth leaves behind: entries that belong to no key. The last key takes them along, and no
//! other key does.

use koel::{CountingFilter, CuckooFilter, Maplet, Merge};
use testkit::keys::{self, all_at, at};

use super::{builders, insert};

const KEYS: u64 = 60_000;

fn some_keys(count: u64) -> Vec<koel::KeyHash> {
    all_at(&keys::hashes(1, count).collect::<Vec<_>>())
}

#[test]
fn the_last_key_takes_along_what_growth_left() {
    let short = CuckooFilter::builder(50, 0.01).growable();
    let mut total = 0;
    for builder in builders(KEYS, 0.01).chain([short]) {
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(1, KEYS));
        let wrong = keys::hashes(7, 100_000).map(at).find(|key| filter.contains(key)).unwrap();
        filter.refute(&wrong).unwrap();
        let keys = some_keys(KEYS);
        let (first, last) = keys.split_at(keys.len() - 1);
        let mut one_by_one = filter.clone();
        first.iter().for_each(|key| assert!(one_by_one.remove(key)));
        let mut removed = vec![false; first.len()];
        filter.remove_many(first, &mut removed);
        assert!(filter == one_by_one && !removed.contains(&false));
        assert!(filter.len() == 1 && filter.contains(&last[0]));
        total += filter.leftovers();

        // Keys after the last one find nothing, in a batch as one by one.
        let beyond = [last, first].concat();
        let mut removed = vec![false; beyond.len()];
        filter.remove_many(&beyond, &mut removed);
        let one: Vec<_> = beyond.iter().map(|key| one_by_one.remove(key)).collect();
        assert!(removed == one && removed.iter().filter(|&&removed| removed).count() == 1);
        assert!(filter == one_by_one && filter.is_empty());
        assert_eq!([filter.leftovers(), filter.slots_in_use()], [0; 2]);
        assert!(filter.corrections() == 1 && !filter.contains(&wrong));
        filter.verify().unwrap();

        filter.shrink_to_fit();
        let mut fresh = builder.build().unwrap();
        fresh.reserve(1).unwrap();
        assert!(filter.size_in_bytes() <= 2 * fresh.size_in_bytes(), "{filter:?}");
        insert(&mut filter, keys::hashes(1, KEYS));
        assert!(keys.iter().all(|key| filter.contains(key)));
    }
    assert!(total > 1000);
}

#[test]
fn so_does_the_last_key_of_a_counting_filter_and_of_a_maplet() {
    // More than the bits of an entry can divide.
    let keys = some_keys(400_000);
    let mut counting = CountingFilter::builder(1, 0.2).grow_from(1).build().unwrap();
    counting.insert_many(&keys).unwrap();
    counting.add(&keys[0], 1 << 20).unwrap();
    assert!(keys[1..].iter().all(|key| counting.remove(key)));
    (0..1 << 20).for_each(|_| assert!(counting.remove(&keys[0])));
    assert!(counting.len() == 1 && counting.slots_in_use() > 100, "{counting:?}");
    assert!(counting.remove(&keys[0]));
    assert_eq!([counting.len(), counting.slots_in_use()], [0; 2]);
    counting.verify().unwrap();

    let mut maplet = Maplet::builder(1, 0.2, 8).grow_from(1).build().unwrap();
    let values: Vec<u64> = (0..400_000).map(|key| key % 8).collect();
    maplet.insert_many(&keys, &values).unwrap();
    let pairs = || keys.iter().zip(&values);
    assert!(pairs().skip(1).all(|(key, &value)| maplet.remove(key, value)));
    assert_eq!(maplet.len(), 1);
    assert!(maplet.remove(&keys[0], values[0]));
    assert_eq!([maplet.len(), maplet.slots_in_use()], [0; 2]);
    maplet.verify().unwrap();
}

/// The number of keys of such a union is no estimate that could reach 0 too early.
#[test]
fn a_union_of_larger_counts_keeps_every_key_until_it_is_removed() {
    for seed in 0..8 {
        let builder = CuckooFilter::builder(50, 1e-5).growable();
        let mut counting = CountingFilter::builder(4000, 1e-5).grow_from(50).build().unwrap();
        let [mut one, mut other] = [(); 2].map(|()| builder.build().unwrap());
        let mut other_counting = counting.clone();
        let keys = all_at(&keys::hashes(seed, 4000).collect::<Vec<_>>());
        one.insert_many(&keys[..2500]).unwrap();
        other.insert_many(&keys[1500..]).unwrap();
        counting.insert_many(&keys[..2500]).unwrap();
        other_counting.insert_many(&keys[1500..]).unwrap();
        // Removals make more entries that belong to nobody, which are taken for keys of the other.
        for key in &keys[..500] {
            assert!(one.remove(key) && counting.remove(key));
        }
        one.merge(&other, Merge::Max).unwrap();
        counting.merge(&other_counting, Merge::Max).unwrap();
        let members = &keys[500..];
        assert!((3500..3850).contains(&one.len()), "{one:?}");
        assert!((3500..3850).contains(&counting.len()), "{counting:?}");
        for (gone, key) in members.iter().enumerate() {
            assert!(members[gone..].iter().step_by(97).all(|key| one.contains(key)));
            assert!(one.contains(key) && one.remove(key), "{seed}: {gone} {one:?}");
            assert!(counting.contains(key) && counting.remove(key), "{seed}: {gone} {counting:?}");
        }
    }
}
