//! How full a filter gets: its capacity always fits, and the first failure is near the load
//! threshold of two choices of four slots.

use koel::{CuckooFilter, FullError, Prefer};
use testkit::keys::{self, at};

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
fn capacities_fit_with_many_seeds() {
    for capacity in 1..=2000 {
        (0..20)
            .for_each(|seed| assert_capacity_fits(capacity, Prefer::Small, capacity << 8 | seed));
    }
    for capacity in (1..=2000).chain([10_000, 100_000, 1_000_000]) {
        assert_capacity_fits(capacity, Prefer::Fast, capacity);
    }
    for (capacity, seeds) in [(10_000, 20), (100_000, 20), (1_000_000, 20), (10_000_000, 4)] {
        (0..seeds).for_each(|seed| assert_capacity_fits(capacity, Prefer::Small, seed));
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
