//! Filters and maplets in serde formats: a byte string if the format has one, else a list of
//! numbers. Damaged ones are refused.

use std::fmt::Debug;

use koel::{CountingFilter, CuckooFilter, Maplet};
use serde::Serialize;
use serde::de::DeserializeOwned;
use testkit::keys;
use testkit::keys::at;

fn filter() -> CuckooFilter {
    let mut filter = CuckooFilter::builder(100, 0.001).seed(9).build().unwrap();
    keys::hashes(1, 100).for_each(|hash| filter.insert(&at(hash)).unwrap());
    (0..9).for_each(|_| filter.insert("again").unwrap());
    filter
}

/// A fixed maplet, and one that has grown.
fn maplets() -> [Maplet; 2] {
    let builder = Maplet::builder(1000, 0.001, 9).seed(9);
    [builder.clone(), builder.grow_from(10)].map(|builder| {
        let mut maplet = builder.build().unwrap();
        for (value, hash) in (0..500).zip(keys::hashes(1, 500)) {
            maplet.insert(&at(hash), value).unwrap();
        }
        maplet
    })
}

fn counting() -> CountingFilter {
    let mut filter = CountingFilter::builder(100, 0.001).seed(9).build().unwrap();
    (1..).zip(keys::hashes(1, 100)).for_each(|(times, hash)| {
        filter.add(&at(hash), 10 * times).unwrap();
    });
    filter
}

#[track_caller]
fn assert_goes_through<T: Serialize + DeserializeOwned + PartialEq + Debug>(it: &T, image: &[u8]) {
    let json = serde_json::to_string(it).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), it);
    let binary = postcard::to_stdvec(it).unwrap();
    assert_eq!(&postcard::from_bytes::<T>(&binary).unwrap(), it);
    // A length, then the image unchanged.
    assert!(binary.ends_with(image) && binary.len() <= image.len() + 4);
}

#[test]
fn filters_and_maplets_round_trip_through_json_and_a_binary_format() {
    assert_goes_through(&filter(), &filter().to_bytes());
    assert_goes_through(&counting(), &counting().to_bytes());
    for maplet in maplets() {
        assert_goes_through(&maplet, &maplet.to_bytes());
    }
}

#[track_caller]
fn assert_refuses_damage<T: Serialize + DeserializeOwned + Debug>(it: &T) {
    let binary = postcard::to_stdvec(it).unwrap();
    for byte in [10, binary.len() / 2, binary.len() - 1] {
        let mut damaged = binary.clone();
        damaged[byte] ^= 1;
        assert!(postcard::from_bytes::<T>(&damaged).is_err(), "byte {byte}");
    }
    assert!(postcard::from_bytes::<T>(&binary[..binary.len() - 1]).is_err());
    let error = serde_json::from_str::<T>("[1,2,3]").unwrap_err();
    assert!(error.to_string().starts_with("not a Koel filter"), "{error}");
}

#[test]
fn damaged_bytes_are_refused_with_the_reason() {
    assert_refuses_damage(&filter());
    assert_refuses_damage(&counting());
    maplets().iter().for_each(assert_refuses_damage);
}

#[test]
fn another_kind_is_refused_with_the_reason() {
    for maplet in maplets() {
        let json = serde_json::to_string(&maplet).unwrap();
        let error = serde_json::from_str::<CuckooFilter>(&json).unwrap_err();
        assert!(error.to_string().starts_with("a maplet, not a filter"), "{error}");
    }
    let json = serde_json::to_string(&filter()).unwrap();
    let error = serde_json::from_str::<Maplet>(&json).unwrap_err();
    assert!(error.to_string().starts_with("a filter, not a maplet"), "{error}");
    let error = serde_json::from_str::<Maplet>("true").unwrap_err();
    assert!(error.to_string().contains("the bytes of a Koel maplet"), "{error}");
}
