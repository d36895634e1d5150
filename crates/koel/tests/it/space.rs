//! Bits per key, everything included, against the figures that the README and the design promise.

use koel::{BuildError, CountingFilter, CuckooFilter, Maplet, Prefer};
use testkit::keys;
use testkit::keys::at;

/// Rates from 3 % down to 0.006 %, evenly spaced in their logarithm.
fn rates() -> impl Iterator<Item = f64> {
    (0..=90).map(|step| 0.03 * (0.000_06_f64 / 0.03).powf(f64::from(step) / 90.0))
}

fn bound(rate: f64) -> f64 {
    1.03 * (1.0 / rate).log2() + 3.2
}

#[test]
fn every_rate_and_capacity_stays_within_the_bound() {
    let capacities =
        [100_000, 131_071, 131_073, 250_000, 1_000_000, 1_048_577, 1_400_000, 2_000_003];
    for capacity in
        capacities.into_iter().chain([10_000_000, 33_554_433, 100_000_000, 1_000_000_000])
    {
        for rate in rates() {
            let plan = CuckooFilter::builder(capacity, rate).plan().unwrap();
            assert!(plan.false_positive_rate <= rate);
            assert!(
                plan.bits_per_key <= bound(rate),
                "{} bits for {capacity} keys at {rate}, bound {}",
                plan.bits_per_key,
                bound(rate)
            );
        }
    }
}

#[test]
fn filters_filled_to_their_capacity_stay_within_the_bound_counters_included() {
    for rate in rates().step_by(6) {
        let mut filter = CuckooFilter::builder(100_000, rate).build().unwrap();
        keys::hashes(1, 100_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
        assert!(filter.bits_per_key() <= bound(rate), "{filter:?} at {rate}");
        assert_eq!(filter.to_bytes().len(), filter.size_in_bytes());
    }
}

#[test]
fn a_tenth_of_a_percent_costs_at_most_12_4_bits_from_a_million_keys_on() {
    for capacity in [1_000_000, 1_400_000, 10_000_000] {
        let mut filter = CuckooFilter::builder(capacity, 0.001).build().unwrap();
        keys::hashes(2, capacity).for_each(|hash| filter.insert(&at(hash)).unwrap());
        assert!(filter.bits_per_key() <= 12.4, "{filter:?}: {}", filter.bits_per_key());
        assert!(filter.false_positive_rate() <= 0.001);
    }
    for capacity in [2_000_000, 100_000_000, 10_000_000_000] {
        let plan = CuckooFilter::builder(capacity, 0.001).plan().unwrap();
        assert!(plan.bits_per_key <= 12.4, "{plan:?}");
    }
}

#[test]
fn a_capacity_just_above_a_power_of_two_takes_no_more_bits_per_key_than_one_just_below() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        for power in 17..30 {
            let bits = |capacity| {
                CuckooFilter::builder(capacity, 0.001).prefer(prefer).plan().unwrap().bits_per_key
            };
            let (below, above) = (bits((1 << power) - 1), bits((1 << power) + 1));
            assert!(above <= below * 1.001, "2^{power}: {below} below, {above} above");
        }
    }
}

/// Bits per key, for `keys` keys.
fn bits_each(size_in_bytes: usize, keys: u64) -> f64 {
    size_in_bytes as f64 * 8.0 / keys as f64
}

#[test]
fn bits_per_key_of_a_growing_filter_count_its_keys() {
    const KEYS: u64 = 50_000;
    let small = CuckooFilter::builder(1000, 0.001).growable();
    let far = CuckooFilter::builder(1_000_000_000, 0.001).grow_from(100);
    for builder in [small, far] {
        let mut filter = builder.build().unwrap();
        for copies in 1..=3 {
            keys::hashes(1, KEYS).for_each(|hash| filter.insert(&at(hash)).unwrap());
            let bits = bits_each(filter.size_in_bytes(), KEYS);
            let says = filter.bits_per_key();
            assert!((says / bits - 1.0).abs() < 0.05, "{copies} copies: {says}, not {bits}");
        }
    }
    let mut maplet = Maplet::builder(1_000_000_000, 0.001, 20).grow_from(100).build().unwrap();
    keys::hashes(1, KEYS).for_each(|hash| maplet.insert(&at(hash), 7).unwrap());
    assert_eq!(maplet.bits_per_entry(), bits_each(maplet.size_in_bytes(), KEYS));
    let mut counts = CountingFilter::builder(1_000_000_000, 0.001).grow_from(100).build().unwrap();
    keys::hashes(1, KEYS).for_each(|hash| assert!(counts.add(&at(hash), 3).unwrap() >= 3));
    let (bits, says) = (bits_each(counts.size_in_bytes(), KEYS), counts.bits_per_key());
    assert!((says / bits - 1.0).abs() < 0.05, "{says}, not {bits}");
}

#[test]
fn bits_per_key_count_the_capacity_of_a_filter_with_room_for_it() {
    let filter = CuckooFilter::builder(1000, 0.001).growable().build().unwrap();
    assert_eq!(filter.bits_per_key(), bits_each(filter.size_in_bytes(), 1000));
    let maplet = Maplet::builder(1000, 0.001, 20).build().unwrap();
    assert_eq!(maplet.bits_per_entry(), bits_each(maplet.size_in_bytes(), 1000));
    let counts = CountingFilter::builder(1000, 0.001).build().unwrap();
    assert_eq!(counts.bits_per_key(), bits_each(counts.size_in_bytes(), 1000));
    // No filter starts with room for fewer than a thousand keys.
    let few = CuckooFilter::builder(1_000_000, 0.001).grow_from(1).plan().unwrap();
    assert_eq!(few, CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).plan().unwrap());
    // A filter planned to grow far has room for the first keys only.
    let plan = CuckooFilter::builder(1_000_000_000, 0.001).grow_from(5000).plan().unwrap();
    assert_eq!(plan.bits_per_key, bits_each(plan.size_in_bytes, 5000));
}

/// Checks the documented bits per key in the four layouts.
#[test]
fn a_concurrent_filter_takes_only_the_bits_of_its_buckets() {
    const KEYS: u64 = 10_000_000;
    for (prefer, rate, bits) in [
        (Prefer::Small, 0.02, 8.3),
        (Prefer::Small, 0.000_1, 16.5),
        (Prefer::Fast, 0.04, 8.4),
        (Prefer::Fast, 0.000_2, 16.9),
    ] {
        let builder = koel::ConcurrentFilter::builder(KEYS, rate).prefer(prefer);
        let size = builder.build().unwrap().size_in_bytes();
        assert!((bits_each(size, KEYS) - bits).abs() < 0.1, "{rate}: {size} bytes");
    }
}

#[test]
fn the_planned_rate_is_that_at_the_capacity_however_far_the_filter_grows() {
    for capacity in [1000, 100_000, 1_000_000, 1_000_000_000] {
        for rate in [0.05, 0.001, 0.000_01] {
            for first in [100, 1000, 5000, 100_000] {
                let builder = CuckooFilter::builder(capacity, rate).grow_from(first);
                let planned = builder.plan().unwrap().false_positive_rate;
                assert!(planned > 0.0 && planned <= rate, "{builder:?}: {planned}");
            }
        }
    }
}

#[test]
fn a_filter_too_large_for_memory_is_an_error() {
    for capacity in [1 << 40, 1 << 44] {
        let builder = CuckooFilter::builder(capacity, 0.001);
        let plan = builder.plan().unwrap();
        // Systems that overcommit memory grant this allocation.
        match builder.build() {
            Ok(filter) => assert_eq!(filter.size_in_bytes(), plan.size_in_bytes),
            Err(error) => assert_eq!(error, BuildError::NoMemory),
        }
    }
}

#[test]
fn a_plan_predicts_the_filter() {
    for (capacity, rate) in [(1, 0.5), (1000, 0.01), (77_777, 1e-5), (3_000_000, 1e-7)] {
        for prefer in [Prefer::Small, Prefer::Fast] {
            let builder = CuckooFilter::builder(capacity, rate).prefer(prefer);
            let (plan, filter) = (builder.plan().unwrap(), builder.build().unwrap());
            assert_eq!(plan.size_in_bytes, filter.size_in_bytes());
            assert_eq!(plan.size_in_bytes, filter.to_bytes().len());
            assert_eq!((plan.layout, plan.buckets), (filter.layout(), filter.buckets()));
        }
    }
}
