//! Wrong values, bounded from both sides: for absent keys, and in addition to the right value of
//! present keys.

use koel::Maplet;
use testkit::keys;
use testkit::keys::at;

const QUERIES: u64 = 4_000_000;

/// Five standard deviations around `mean`.
fn assert_near(found: u64, mean: f64, maplet: &Maplet) {
    let distance = (found as f64 - mean).abs();
    assert!(distance < 5.0 * mean.sqrt().max(1.0), "{maplet:?}: {found}, expected {mean}");
}

#[test]
fn absent_keys_have_e_values_and_present_keys_one_and_e() {
    for (rate, value_bits) in [(0.05, 3), (0.004, 5), (0.002, 9), (0.000_3, 14), (1e-5, 12)] {
        let mut maplet = Maplet::builder(400_000, rate, value_bits).build().unwrap();
        for share in [100_000, 400_000] {
            let missing = keys::hashes(1, share).skip(usize::try_from(maplet.len()).unwrap());
            missing.for_each(|hash| maplet.insert(&at(hash), hash & 7).unwrap());
            let expected = maplet.false_candidates();
            assert!(expected <= rate);
            let wrong: usize =
                keys::hashes(9, QUERIES).map(|hash| maplet.get(&at(hash)).len()).sum();
            assert_near(wrong as u64, QUERIES as f64 * expected, &maplet);
            let values: usize = keys::hashes(1, share).map(|h| maplet.get(&at(h)).len()).sum();
            // Two keys with one entry give each other a wrong value, so there are half as many
            // independent pairs.
            let pairs = (values as u64 - share) / 2;
            assert_near(pairs, share as f64 * expected / 2.0, &maplet);
        }
        assert!(maplet.false_candidates() > rate / 4.5, "{maplet:?}: wider than it need be");
    }
}

#[test]
fn a_location_of_40_bits_is_wrong_once_in_100_000_at_most() {
    let mut maplet = Maplet::builder(1_000_000, 1e-5, 40).build().unwrap();
    keys::hashes(1, 1_000_000).for_each(|hash| maplet.insert(&at(hash), hash >> 24).unwrap());
    assert!(keys::hashes(1, 1_000_000).all(|hash| maplet.get(&at(hash)).any(|v| v == hash >> 24)));
    let wrong: usize = keys::hashes(2, QUERIES).map(|hash| maplet.get(&at(hash)).len()).sum();
    assert!(maplet.false_candidates() <= 1e-6);
    assert_near(wrong as u64, QUERIES as f64 * maplet.false_candidates(), &maplet);
}
