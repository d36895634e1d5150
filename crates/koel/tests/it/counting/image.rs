//! The bytes of a counting filter: they round-trip, and damaged bytes are refused or harmless.

use koel::{CountingFilter, CuckooFilter, ImageError, Maplet};
use testkit::counting::arbitrary_bytes;
use testkit::keys::at;
use testkit::{image, keys};

use crate::damage;

/// Small filters with and without counters, nearly full; two have grown.
fn samples() -> Vec<CountingFilter> {
    let mut samples = Vec::new();
    for (rate, bits) in [(0.05, 1), (0.001, 3), (1e-6, 40)] {
        let builder = CountingFilter::builder(8, rate).count_bits(bits);
        for builder in [builder.clone(), builder.grow_from(1)] {
            let whole = builder.build().unwrap().to_bytes();
            let mut filter = CountingFilter::from_bytes(&image::reshape(&whole, 0, 3)).unwrap();
            for (times, hash) in (1..).zip(keys::hashes(1, 11)) {
                let added = filter.add(&at(hash), times);
                assert!(added.is_ok() || !filter.contains(&at(hash)));
            }
            assert!(filter.len() > 20);
            samples.push(filter);
        }
    }
    samples
}

fn files() -> Vec<Vec<u8>> {
    samples().iter().map(CountingFilter::to_bytes).collect()
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
fn a_counting_filter_round_trips_and_is_not_read_as_another_type() {
    for filter in samples() {
        let bytes = filter.to_bytes();
        assert_eq!(bytes.len(), filter.size_in_bytes());
        assert!(CountingFilter::from_bytes(&bytes).unwrap() == filter);
        let refused = CuckooFilter::from_bytes(&bytes).unwrap_err();
        damage::assert_kind(refused, "filter", "counting filter");
        damage::assert_kind(Maplet::from_bytes(&bytes).unwrap_err(), "maplet", "counting filter");
    }
    for (bytes, found) in [
        (Maplet::builder(9, 0.01, 8).build().unwrap().to_bytes(), "maplet"),
        (CuckooFilter::with_capacity(9).to_bytes(), "filter"),
    ] {
        let refused = CountingFilter::from_bytes(&bytes).unwrap_err();
        damage::assert_kind(refused, "counting filter", found);
    }
}

/// Edits the bytes of a filter of one key into states that no filter writes.
#[test]
fn slots_and_counters_that_contradict_each_other_are_refused() {
    let mut filter = CountingFilter::builder(8, 0.000_3).count_bits(3).build().unwrap();
    filter.add("ada", 9).unwrap();
    let bytes = filter.to_bytes();
    let (body, bucket_bytes) = (image::HEADER_BYTES, 7);
    let first = (body..bytes.len() - 16).find(|&at| bytes[at] != 0).unwrap();
    let bucket = body + (first - body) / bucket_bytes * bucket_bytes;
    let refuse = |change: &dyn Fn(&mut Vec<u8>), field: &str| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        image::reseal(&mut bytes);
        let error = arbitrary_bytes(&bytes, 0).unwrap_err();
        assert!(
            matches!(error, ImageError::Field { field: found, .. } if found == field),
            "{error}"
        );
    };
    assert_eq!(filter.layout().to_string(), "plain 4x11+3");
    let at = bytes.len() - 16;
    refuse(&|bytes| bytes[104] = 0, "counter limit");
    refuse(&|bytes| bytes[at + 8] += 1, "keys");
    refuse(&|bytes| bytes[at + 8] = 0, "counter value");
    refuse(&|bytes| bytes[at] ^= 1, "counter identity");
    // A counter whose value would fit into the slot.
    refuse(&|bytes| set_count(bytes, bucket, 6), "counter identity");
    refuse(&|bytes| set_count(bytes, bucket, 0), "bucket");
    // A second slot for the same key.
    refuse(
        &|bytes| {
            let word = word_at(bytes, bucket);
            put(bytes, bucket, word | (word & 0x3fff) << 14);
            bytes[88] += 1;
            bytes[80] += 7;
        },
        "bucket",
    );
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes the count of the first slot in the bucket at `at`.
fn set_count(bytes: &mut [u8], at: usize, count: u64) {
    let word = word_at(bytes, at);
    put(bytes, at, word & !(7 << 11) | count << 11);
}
