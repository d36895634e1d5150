//! The promised false-positive rate, bounded from both sides: too few false positives would be a
//! bug as well.

use koel::{CuckooFilter, Prefer};
use testkit::addressing::Addressing;
use testkit::keys;
use testkit::keys::at;

const QUERIES: u64 = 4_000_000;

/// False positives among keys that were never inserted.
fn false_positives(filter: &CuckooFilter) -> u64 {
    keys::hashes(99, QUERIES).filter(|&hash| filter.contains(&at(hash))).count() as u64
}

/// Within five standard deviations of the rate that the filter reports.
fn assert_as_expected(filter: &CuckooFilter) {
    let rate = filter.false_positive_rate();
    let (mean, hits) = (QUERIES as f64 * rate, false_positives(filter) as f64);
    let sigma = (mean * (1.0 - rate)).sqrt();
    assert!(
        (hits - mean).abs() < 5.0 * sigma,
        "{filter:?}: {hits} hits, expected {mean} +- {sigma}"
    );
}

#[test]
fn the_measured_rate_is_the_expected_rate_at_every_load_and_layout() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        for rate in [0.03, 0.015, 0.004, 0.001, 0.000_2, 0.000_06] {
            let mut filter = CuckooFilter::builder(200_000, rate).prefer(prefer).build().unwrap();
            let mut keys = keys::hashes(1, 200_000);
            for share in [20_000, 80_000, 100_000] {
                keys.by_ref().take(share).for_each(|hash| filter.insert(&at(hash)).unwrap());
                assert_as_expected(&filter);
            }
            assert_eq!(filter.len(), filter.capacity());
            assert!(filter.false_positive_rate() <= rate);
        }
    }
}

#[test]
fn the_rate_holds_in_filters_of_several_segments() {
    let mut filter = CuckooFilter::builder(5_000_000, 0.001).build().unwrap();
    assert!(filter.segments() > 1);
    keys::hashes(3, 5_000_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
    assert_as_expected(&filter);
}

#[test]
fn the_rate_holds_for_text_and_integers_under_both_hashes() {
    for sip in [false, true] {
        let builder = CuckooFilter::builder(100_000, 0.01);
        let builder = if sip { builder.sip_key([7; 16]) } else { builder.seed(12_345) };
        let mut filter = builder.build().unwrap();
        for i in 0..50_000_u64 {
            filter.insert(&i).unwrap();
            filter.insert(&format!("user{i}@example.org")).unwrap();
        }
        let mut hits = 0;
        for i in 1_000_000..1_500_000_u64 {
            hits += u64::from(filter.contains(&i));
            hits += u64::from(filter.contains(&format!("user{i}@example.org")));
        }
        let rate = filter.false_positive_rate();
        let (mean, sigma) = (1e6 * rate, (1e6 * rate).sqrt());
        assert!(
            (hits as f64 - mean).abs() < 5.0 * sigma,
            "{hits} hits, expected {mean} +- {sigma}"
        );
    }
}

#[test]
fn counts_are_too_high_as_rarely_as_documented() {
    let mut filter = CuckooFilter::builder(400_000, 0.01).build().unwrap();
    keys::hashes(5, 400_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let wrong =
        keys::hashes(5, 400_000).filter(|&hash| filter.count(&at(hash)) != 1).count() as f64;
    let mean = 400_000.0 * filter.false_positive_rate();
    // Wrong counts come in pairs, which doubles their variance.
    let sigma = (2.0 * mean).sqrt();
    assert!((wrong - mean).abs() < 5.0 * sigma, "{wrong} wrong counts, expected {mean} +- {sigma}");
}

#[test]
fn no_fingerprint_is_wrong_more_often_than_another() {
    let mut filter = CuckooFilter::builder(300_000, 0.03).build().unwrap();
    keys::hashes(5, 300_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let addressing = Addressing::of(&filter.to_bytes());
    // Grouped by core, the part of the fingerprint that also determines the alternate bucket.
    let mut wrong = [0_u32; 64];
    for hash in keys::hashes(98, QUERIES).filter(|&hash| filter.contains(&at(hash))) {
        wrong[usize::try_from(addressing.fingerprint(hash) >> addressing.fraction_bits())
            .unwrap()] += 1;
    }
    assert_eq!(wrong[0], 0);
    let mean = f64::from(wrong.iter().sum::<u32>()) / 63.0;
    let distance = wrong[1..].iter().map(|&count| (f64::from(count) - mean).powi(2) / mean);
    let sigmas = (distance.sum::<f64>() - 62.0) / (2.0_f64 * 62.0).sqrt();
    assert!(sigmas < 5.0, "{sigmas} sigmas: {wrong:?}");
}
