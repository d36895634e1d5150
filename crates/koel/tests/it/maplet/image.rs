//! The bytes of a maplet: they round-trip, and damaged bytes are refused or harmless.

use koel::{CuckooFilter, FilterView, ImageError, Maplet};
use testkit::keys::at;
use testkit::maplets::arbitrary_bytes;
use testkit::{image, keys};

use crate::damage;

/// Small maplets of each packing, nearly full.
fn samples() -> Vec<Maplet> {
    let fill = |small: Maplet, segment_bits, buckets| {
        let bytes = image::reshape(&small.to_bytes(), segment_bits, buckets);
        let mut maplet = Maplet::from_bytes(&bytes).unwrap();
        let value = |hash| super::value_of(&small, hash);
        let taken = keys::hashes(1, maplet.slots())
            .filter(|&hash| maplet.insert(&at(hash), value(hash)).is_ok());
        assert!(taken.count() as u64 >= maplet.slots() / 2);
        maplet
    };
    let forms = super::of_each_form(1).into_iter();
    forms.flat_map(|small| [fill(small.clone(), 0, 3), fill(small, 1, 4)]).collect()
}

fn files() -> Vec<Vec<u8>> {
    samples().iter().map(Maplet::to_bytes).collect()
}

#[test]
fn every_flipped_bit_is_detected_and_with_valid_checksums_refused_or_harmless() {
    damage::assert_flips_are_refused_or_harmless(&files(), arbitrary_bytes, 30, 1000);
}

#[test]
fn every_truncation_and_extension_is_refused() {
    damage::assert_other_lengths_are_refused(&files(), arbitrary_bytes);
}

#[test]
fn a_maplet_round_trips_and_is_not_read_as_a_filter() {
    for maplet in samples() {
        let bytes = maplet.to_bytes();
        assert_eq!(bytes.len(), maplet.size_in_bytes());
        assert!(Maplet::from_bytes(&bytes).unwrap() == maplet);
        damage::assert_kind(FilterView::open(&bytes).err().unwrap(), "filter", "maplet");
    }
    let filter = CuckooFilter::with_capacity(10).to_bytes();
    damage::assert_kind(arbitrary_bytes(&filter, 0).unwrap_err(), "maplet", "filter");
}

#[test]
fn an_invalid_field_is_named() {
    let wide = Maplet::builder(1, 1e-5, 33).build().unwrap();
    let cases = [
        ("kind", 12, 4),
        ("codec", 13, 1),
        ("value bits", 17, 0),
        ("value bits", 17, 41),
        ("fingerprint bits", 15, 33),
        ("keys", 80, 1),
        ("counters", 96, 1),
        ("counter limit", 104, 1),
        ("distinct entries", 112, 1),
    ];
    for (name, offset, value) in cases {
        let mut bytes = wide.to_bytes();
        bytes[offset] = value;
        image::reseal(&mut bytes);
        let error = arbitrary_bytes(&bytes, 0).unwrap_err();
        assert!(
            matches!(error, ImageError::Field { field, .. } if field == name),
            "{name}: {error}"
        );
    }
    // A value of 33 bits beside a fingerprint of 31 fills a slot; one beside a fingerprint of 24
    // leaves bits that must be zero.
    let mut narrow = Maplet::builder(1, 1e-5, 33).build().unwrap().to_bytes();
    narrow[15] = 24;
    narrow[26..28].fill(18);
    image::reseal(&mut narrow);
    let mut maplet = Maplet::from_bytes(&narrow).unwrap();
    maplet.insert("key", (1 << 33) - 1).unwrap();
    let mut bytes = maplet.to_bytes();
    let top = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[top] |= 0x80;
    bytes[80] = 1;
    image::reseal(&mut bytes);
    let refused = arbitrary_bytes(&bytes, 0);
    assert!(matches!(refused, Err(ImageError::Field { field: "bucket", .. })));
}
