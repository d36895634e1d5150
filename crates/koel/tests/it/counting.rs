//! The counting filter: limits and rates. Submodules test it against a model, its growth, its
//! unions and its bytes.

mod grow;
mod image;
mod merge;
mod model;

use koel::{BuildError, CountingFilter, CountingView, FullError};
use testkit::keys;
use testkit::keys::{all_at, at};

#[test]
fn impossible_builds_are_refused_with_a_reason() {
    let build = |rate, bits| CountingFilter::builder(1000, rate).count_bits(bits).build();
    assert_eq!(build(0.01, 0).unwrap_err(), BuildError::ValueBits { value_bits: 0 });
    assert_eq!(build(0.01, 41).unwrap_err(), BuildError::ValueBits { value_bits: 41 });
    assert!(matches!(build(0.0, 8).unwrap_err(), BuildError::Rate { .. }));
    assert!(matches!(build(1e-13, 8).unwrap_err(), BuildError::TooPrecise { .. }));
}

#[test]
fn the_build_parameters_are_in_the_bytes() {
    let builder = CountingFilter::builder(5000, 0.003);
    let keyed = builder.clone().sip_key([3; 16]);
    assert!(keyed.build().unwrap().hasher() != builder.build().unwrap().hasher());
    for builder in [keyed, builder.clone(), builder.grow_from(1000)] {
        let mut filter = builder.build().unwrap();
        filter.add("ada", 1_000_000).unwrap();
        let bytes = filter.to_bytes();
        let view = CountingView::open(&bytes).unwrap();
        assert_eq!((filter.capacity(), filter.requested_false_positive_rate()), (5000, 0.003));
        assert_eq!((view.capacity(), view.requested_false_positive_rate()), (5000, 0.003));
        assert!(view.hasher() == filter.hasher() && view.count("ada") == 1_000_000);
        assert_eq!([filter.size_in_bytes(), view.size_in_bytes()], [bytes.len(); 2]);
    }
}

#[test]
fn every_capacity_fits_with_any_counts_and_removing_everything_leaves_zeros() {
    for capacity in (1..=100).chain([10_000, 300_000]) {
        for bits in [1, 8, 40] {
            let builder = CountingFilter::builder(capacity, 0.001).count_bits(bits);
            let mut filter = builder.build().unwrap();
            let empty = filter.to_bytes();
            let times = |hash: u64| 1 + hash % 3;
            for hash in keys::hashes(capacity, capacity) {
                assert!(filter.add(&at(hash), times(hash)).unwrap() >= times(hash));
            }
            let sum: u64 = keys::hashes(capacity, capacity).map(times).sum();
            assert_eq!((filter.len(), filter.counts().sum::<u64>()), (sum, sum));
            let estimate = filter.distinct_estimate();
            assert!((estimate / capacity as f64 - 1.0).abs() < 0.01 + 2.0 / capacity as f64);
            for hash in keys::hashes(capacity, capacity) {
                (0..times(hash)).for_each(|_| assert!(filter.remove(&at(hash))));
            }
            assert!(filter.is_empty() && filter.to_bytes() == empty);
        }
    }
}

#[test]
fn wrong_counts_are_as_rare_as_promised() {
    let mut filter = CountingFilter::builder(200_000, 0.002).build().unwrap();
    let present: Vec<u64> = keys::hashes(1, 200_000).collect();
    filter.insert_many(&all_at(&present)).unwrap();
    filter.insert_many(&all_at(&present)).unwrap();
    let rate = filter.false_positive_rate();
    assert!(rate <= 0.002 && rate > 0.002 / 4.5, "{filter:?}");
    let near = |found: usize, of: usize| {
        let mean = of as f64 * rate;
        assert!((found as f64 - mean).abs() < 5.0 * mean.sqrt(), "{found}, not {mean}");
    };
    let absent: Vec<u64> = keys::hashes(2, 4_000_000).collect();
    let mut counts = vec![0; absent.len()];
    filter.count_many(&all_at(&absent), &mut counts);
    near(counts.iter().filter(|&&count| count > 0).count(), absent.len());
    assert!(absent.iter().zip(&counts).all(|(&hash, &count)| filter.count(&at(hash)) == count));
    let mut counts = vec![0; present.len()];
    filter.count_many(&all_at(&present), &mut counts);
    assert!(counts.iter().all(|&count| count >= 2 && count % 2 == 0));
    near(counts.iter().filter(|&&count| count > 2).count(), present.len());
}

#[test]
fn a_full_filter_refuses_new_keys_and_still_counts_the_others() {
    let mut filter = CountingFilter::builder(50, 0.001).build().unwrap();
    let refused = keys::hashes(3, 1000).find_map(|hash| filter.insert(&at(hash)).err());
    assert!(
        matches!(refused, Some(FullError::Slots { .. } | FullError::Values { .. })),
        "{refused:?}"
    );
    assert!(filter.len() >= 50);
    let before = filter.to_bytes();
    assert!(keys::hashes(4, 100).filter(|&hash| filter.insert(&at(hash)).is_err()).count() > 90);
    for hash in keys::hashes(3, 50) {
        assert_eq!(filter.add(&at(hash), 1_000_000).unwrap(), filter.count(&at(hash)));
        assert!(filter.count(&at(hash)) > 1_000_000);
    }
    assert!(filter.to_bytes() != before);
}

#[test]
fn a_count_beyond_64_bits_is_an_error() {
    let mut filter = CountingFilter::builder(10, 0.001).build().unwrap();
    assert_eq!(filter.add("ada", u64::MAX - 1), Ok(u64::MAX - 1));
    assert_eq!(filter.add("ada", 2), Err(FullError::Overflow));
    assert_eq!(filter.add("grace", 2), Err(FullError::Overflow));
    assert_eq!((filter.count("ada"), filter.count("grace")), (u64::MAX - 1, 0));
    assert_eq!(filter.insert("ada"), Ok(u64::MAX));
    assert_eq!(filter.insert("ada"), Err(FullError::Overflow));
    assert!(filter.remove("ada"));
    assert_eq!(filter.insert("grace"), Ok(1));
    assert_eq!(filter.add("mary", 0), Ok(0));
    assert!(!filter.contains("mary") && !filter.remove("mary"));
}
