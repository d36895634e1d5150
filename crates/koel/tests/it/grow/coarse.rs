//! Filters of high false-positive rates, where growth needs more bits than the rate does.

use koel::CuckooFilter;

use super::insert;
use testkit::keys;

/// The reason is in docs/decisions/0008-growth.md: fingerprints keep bits that growth can take.
#[test]
fn growable_filters_of_high_rates_are_one_filter_and_grow_from_is_the_smaller_one() {
    let grown = |rate| {
        let mut filter = CuckooFilter::builder(1000, rate).growable().build().unwrap();
        insert(&mut filter, keys::hashes(1, 200_000));
        filter
    };
    let [coarse, fine, least] = [0.03, 0.01, 0.005].map(grown);
    assert!(coarse.layout() == fine.layout() && fine.layout() == least.layout());
    assert_eq!(coarse.size_in_bytes(), fine.size_in_bytes());
    assert!(grown(0.003).layout() != fine.layout());
    for (rate, most_bits) in [(0.03, 15.5), (0.01, 17.5)] {
        let mut filter = CuckooFilter::builder(200_000, rate).grow_from(1000).build().unwrap();
        insert(&mut filter, keys::hashes(1, 200_000));
        let (bits, share) = (filter.bits_per_key(), filter.false_positive_rate() / rate);
        println!("{rate}: {bits} and {} bits, {}", fine.bits_per_key(), fine.false_positive_rate());
        assert!(bits < most_bits && bits < fine.bits_per_key() - 2.0, "{rate}: {bits}");
        assert!(share < 1.0, "{rate}: {share}");
    }
}
