//! How full a filter gets: its capacity always fits, and the first failure is near the load
//! threshold of two choices of four slots.

use koel::{CuckooFilter, FullError, Prefer};
use testkit::keys;
use testkit::keys::at;

/// Inserts `capacity` keys into a filter built for them. A failure prints the parameters that
/// reproduce it.
fn assert_capacity_fits(capacity: u64, prefer: Prefer, seed: u64) {
    let mut filter = CuckooFilter::builder(capacity, 0.001).prefer(prefer).build().unwrap();
    for (i, hash) in keys::hashes(seed, capacity).enumerate() {
        let inserted = filter.insert(&at(hash));
        assert_eq!(inserted, Ok(()), "key {i} of {capacity}, {prefer:?}, seed {seed}");
    }
    assert_eq!(filter.len(), capacity);
    assert!(keys::hashes(seed, capacity).all(|hash| filter.contains(&at(hash))));
}

#[test]
fn every_capacity_up_to_2000_fits_with_20_seeds() {
    for capacity in 1..=2000 {
        for seed in 0..20 {
            assert_capacity_fits(capacity, Prefer::Small, capacity << 8 | seed);
        }
    }
}

#[test]
fn capacities_of_fast_filters_fit() {
    for capacity in (1..=2000).chain([10_000, 100_000, 1_000_000]) {
        assert_capacity_fits(capacity, Prefer::Fast, capacity);
    }
}

#[test]
fn powers_of_ten_up_to_a_million_fit_with_20_seeds() {
    for capacity in [10_000, 100_000, 1_000_000] {
        for seed in 0..20 {
            assert_capacity_fits(capacity, Prefer::Small, seed);
        }
    }
}

#[test]
fn ten_million_keys_fit_with_4_seeds() {
    for seed in 0..4 {
        assert_capacity_fits(10_000_000, Prefer::Small, seed);
    }
}

#[test]
fn the_first_failure_at_a_million_slots_is_at_a_load_of_0_972_or_more() {
    for seed in 0..20 {
        let mut filter = CuckooFilter::builder(1_015_000, 0.001).build().unwrap();
        assert!((1 << 20) - filter.slots() < 5_000);
        let failed = keys::hashes(seed, u64::MAX).find_map(|hash| filter.insert(&at(hash)).err());
        assert!(matches!(failed, Some(FullError::Slots { .. })));
        assert!(filter.load_factor() >= 0.972, "seed {seed}: {}", filter.load_factor());
    }
}

#[test]
fn ten_turnovers_at_a_load_of_0_95_lose_and_refuse_nothing() {
    let mut filter = CuckooFilter::builder(1_000_000, 0.001).build().unwrap();
    let live = filter.slots() * 95 / 100;
    keys::hashes(8, live).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let (arriving, mut leaving) = (keys::hashes(8, 11 * live), keys::hashes(8, u64::MAX));
    let skip = usize::try_from(live).unwrap();
    for hash in arriving.skip(skip) {
        assert!(filter.remove(&at(leaving.next().unwrap())));
        filter.insert(&at(hash)).unwrap();
    }
    assert_eq!(filter.len(), live);
    assert!(leaving.take(skip).all(|hash| filter.contains(&at(hash))));
}

#[test]
fn an_insert_that_fails_changes_no_byte_and_loses_no_key() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        let mut filter = CuckooFilter::builder(3000, 0.001).prefer(prefer).build().unwrap();
        let mut accepted = Vec::new();
        let mut refused = 0;
        for hash in keys::hashes(4, u64::MAX) {
            let before = filter.to_bytes();
            match filter.insert(&at(hash)) {
                Ok(()) => accepted.push(hash),
                Err(_) => {
                    refused += 1;
                    assert!(filter.to_bytes() == before);
                }
            }
            if refused == 100 {
                break;
            }
        }
        assert!(accepted.len() >= 3000);
        assert!(accepted.iter().all(|&hash| filter.contains(&at(hash))));
        filter.verify().unwrap();
    }
}
