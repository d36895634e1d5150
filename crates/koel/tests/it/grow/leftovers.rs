//! What growth leaves behind: entries that belong to no key. The last key takes them along, and no
//! other key does.

use koel::{CountingFilter, CuckooFilter, Maplet, Merge};
use testkit::keys::{self, all_at, at};

use super::{builders, insert};
use crate::subject::Subject;

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
    fn of<S: Subject>(mut it: S, copies: u64) {
        // More than the bits of an entry can divide.
        let keys = some_keys(400_000);
        let values: Vec<u64> = (0..400_000).map(|number| it.value(number)).collect();
        it.put_many(&keys, &values).unwrap();
        (0..copies).for_each(|_| it.put(&keys[0], values[0]).unwrap());
        assert!(it.take_many(&keys[1..], &values[1..]).into_iter().all(|removed| removed));
        (0..copies).for_each(|_| assert!(it.take(&keys[0], values[0])));
        assert!(it.len() == 1 && it.load_factor() > 0.0, "{it:?}");
        assert!(it.take(&keys[0], values[0]));
        assert_eq!((it.len(), it.load_factor(), it.verify()), (0, 0.0, Ok(())));
    }
    of(CountingFilter::builder(1, 0.2).grow_from(1).build().unwrap(), 1 << 20);
    of(Maplet::builder(1, 0.2, 8).grow_from(1).build().unwrap(), 0);
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
