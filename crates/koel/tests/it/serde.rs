//! Filters and maplets in serde formats: a byte string if the format has one, else a list of
//! numbers. Damaged ones are refused.

use koel::{CountingFilter, CuckooFilter, Maplet};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::subject::{Subject, each};

/// A fixed one, and one that has grown.
fn samples<S: Subject>() -> [S; 2] {
    [S::fixed(500), S::growing()].map(|mut all| {
        let mut it = all.remove(0);
        (0..500_u64).for_each(|key| it.put(&key, it.value(key)).unwrap());
        it
    })
}

#[test]
fn filters_and_maplets_round_trip_and_damaged_ones_are_refused_with_the_reason() {
    fn of<S: Subject + Serialize + DeserializeOwned>() {
        for it in samples::<S>() {
            let json = serde_json::to_string(&it).unwrap();
            assert_eq!(serde_json::from_str::<S>(&json).unwrap(), it);
            let binary = postcard::to_stdvec(&it).unwrap();
            assert_eq!(postcard::from_bytes::<S>(&binary).unwrap(), it);
            // A length, then the image unchanged.
            let image = it.to_bytes();
            assert!(binary.ends_with(&image) && binary.len() <= image.len() + 4);
            for byte in [10, binary.len() / 2, binary.len() - 1] {
                let mut damaged = binary.clone();
                damaged[byte] ^= 1;
                assert!(postcard::from_bytes::<S>(&damaged).is_err(), "byte {byte}");
            }
            assert!(postcard::from_bytes::<S>(&binary[..binary.len() - 1]).is_err());
        }
        let error = serde_json::from_str::<S>("[1,2,3]").unwrap_err();
        assert!(error.to_string().starts_with("not a Koel filter"), "{error}");
    }
    each!(of(): CuckooFilter, CountingFilter, Maplet);
}

#[test]
fn another_kind_is_refused_with_the_reason() {
    fn refused<S: DeserializeOwned>(json: &str, reason: &str) {
        let error = serde_json::from_str::<S>(json).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
    for maplet in samples::<Maplet>() {
        let json = serde_json::to_string(&maplet).unwrap();
        refused::<CuckooFilter>(&json, "a maplet, not a filter");
    }
    let json = serde_json::to_string(&samples::<CuckooFilter>()[0]).unwrap();
    refused::<Maplet>(&json, "a filter, not a maplet");
    refused::<Maplet>("true", "the bytes of a Koel maplet");
}
