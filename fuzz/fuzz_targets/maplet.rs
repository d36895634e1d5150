//! Any bytes: refused with a reason, or a sound maplet or counting filter that takes whatever is done to it. As they are, and with checksums that fit.
#![no_main]

use koel::ImageError;
use libfuzzer_sys::fuzz_target;
use testkit::exercise::operations;
use testkit::image::reseal;
use testkit::{counting, maplets};

fuzz_target!(|bytes: &[u8]| {
    let first = either(bytes);
    let mut sealed = bytes.to_vec();
    reseal(&mut sealed);
    let second = either(&sealed);
    assert!(first.is_err() || second.is_ok(), "sealing broke a sound maplet");
});

/// As one or the other: no bytes are both.
fn either(bytes: &[u8]) -> Result<(), ImageError> {
    let maplet = maplets::arbitrary_bytes(bytes, operations(bytes));
    let counting = counting::arbitrary_bytes(bytes, operations(bytes));
    assert!(maplet.is_err() || counting.is_err(), "one file of two kinds");
    maplet.or(counting)
}
