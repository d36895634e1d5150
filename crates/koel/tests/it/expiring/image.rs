//! The bytes of an expiring filter: they round-trip, and damaged bytes are refused or harmless.

use koel::{CuckooFilter, ExpiringFilter, ImageError, Maplet, WhenFull};
use testkit::expiring::arbitrary_bytes;
use testkit::keys::at;
use testkit::{image, keys};

use crate::damage;

/// Small filters, nearly full, with live and dead entries.
fn samples() -> Vec<ExpiringFilter> {
    let mut samples = Vec::new();
    for (rate, steps, when_full) in
        [(0.05, 4, WhenFull::EvictOldest), (0.001, 24, WhenFull::Fail), (1e-6, 1, WhenFull::Fail)]
    {
        let builder = ExpiringFilter::builder(8, rate).window(70).steps(steps);
        let whole = builder.when_full(when_full).build().unwrap().to_bytes();
        let small = image::reshape(&whole, 0, 3);
        let mut filter = ExpiringFilter::from_bytes(&small).unwrap();
        for (i, hash) in (0..).zip(keys::hashes(1, 14)) {
            filter.advance(i * 70 / 9);
            assert!(filter.insert(&at(hash)).is_ok() || !filter.contains(&at(hash)));
        }
        assert!(filter.len() > 5, "{filter:?}");
        samples.push(filter);
    }
    samples
}

fn files() -> Vec<Vec<u8>> {
    samples().iter().map(ExpiringFilter::to_bytes).collect()
}

#[test]
fn every_flipped_bit_is_detected_and_with_valid_checksums_refused_or_harmless() {
    damage::assert_flips_are_refused_or_harmless(&files(), arbitrary_bytes, 30, 500);
}

#[test]
fn every_truncation_and_extension_is_refused() {
    damage::assert_other_lengths_are_refused(&files(), arbitrary_bytes);
}

#[test]
fn an_expiring_filter_round_trips_and_is_not_read_as_another_type() {
    for filter in samples() {
        let bytes = filter.to_bytes();
        assert_eq!(bytes.len(), filter.size_in_bytes());
        assert!(ExpiringFilter::from_bytes(&bytes).unwrap() == filter);
        let refused = CuckooFilter::from_bytes(&bytes).unwrap_err();
        damage::assert_kind(refused, "filter", "expiring filter");
        damage::assert_kind(Maplet::from_bytes(&bytes).unwrap_err(), "maplet", "expiring filter");
    }
    let maplet = Maplet::builder(9, 0.01, 8).build().unwrap().to_bytes();
    let refused = ExpiringFilter::from_bytes(&maplet).unwrap_err();
    damage::assert_kind(refused, "expiring filter", "maplet");
}

/// A file may not hold an entry that is of a step to come.
#[test]
fn forged_times_are_refused_by_the_name_of_the_field() {
    let filter = &samples()[1];
    let refuse = |offset: usize, value: u8| {
        let mut forged = filter.to_bytes();
        forged[offset] = value;
        image::reseal(&mut forged);
        match ExpiringFilter::from_bytes(&forged) {
            Err(ImageError::Field { field, .. }) => field,
            other => panic!("{offset}: {other:?}"),
        }
    };
    assert_eq!(refuse(152, 0), "step length");
    assert_eq!([refuse(168, 0), refuse(168, 31), refuse(168, 201)], ["steps"; 3]);
    assert_eq!(refuse(132, 1), "step");
    assert_eq!([refuse(169, 3), refuse(169, 26)], ["youngest evicted"; 2]);
    assert_eq!(refuse(170, 2), "when full");
    assert_eq!([171, 172].map(|offset| refuse(offset, 1)), ["reserved", "narrow buckets"]);
    assert_eq!(refuse(80, 0), "keys");
    assert_eq!([refuse(96, 0), refuse(96, 2)], ["counters"; 2]);
    // The only group was swept at a step to come; there is no second group.
    let end = filter.size_in_bytes();
    assert_eq!([refuse(end - 15, 0x80), refuse(end - 14, 1)], ["sweeps"; 2]);
}
