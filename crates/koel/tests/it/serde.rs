//! Filters inside other messages: a string of bytes where the format has one, a list of numbers where not, and refused where damaged.

use koel::CuckooFilter;
use testkit::keys;

fn sample() -> CuckooFilter {
    let mut filter = CuckooFilter::builder(100, 0.001).seed(9).build().unwrap();
    keys::hashes(1, 100).for_each(|hash| filter.insert_hash(hash).unwrap());
    (0..9).for_each(|_| filter.insert("again").unwrap());
    filter
}

#[test]
fn a_filter_goes_through_json_and_through_a_binary_format() {
    let filter = sample();
    let json = serde_json::to_string(&filter).unwrap();
    assert_eq!(serde_json::from_str::<CuckooFilter>(&json).unwrap(), filter);
    let binary = postcard::to_stdvec(&filter).unwrap();
    assert_eq!(postcard::from_bytes::<CuckooFilter>(&binary).unwrap(), filter);
    // A length, and the image as it is.
    assert!(binary.ends_with(&filter.to_bytes()) && binary.len() <= filter.size_in_bytes() + 4);
}

#[test]
fn a_damaged_filter_is_refused_with_the_reason() {
    let mut binary = postcard::to_stdvec(&sample()).unwrap();
    let last = binary.len() - 1;
    binary[last] ^= 1;
    assert!(postcard::from_bytes::<CuckooFilter>(&binary).is_err());
    let error = serde_json::from_str::<CuckooFilter>("[1,2,3]").unwrap_err();
    assert!(error.to_string().starts_with("not a Koel filter"), "{error}");
}
