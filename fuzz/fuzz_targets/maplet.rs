//! Any bytes: refused with a reason, or a sound maplet or counting filter that takes whatever is done to it. As they are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::exercise::operations;
use testkit::image::reseal;
use testkit::maplets::with_values;

fuzz_target!(|bytes: &[u8]| {
    let first = with_values(bytes, operations(bytes));
    let mut sealed = bytes.to_vec();
    reseal(&mut sealed);
    let second = with_values(&sealed, operations(bytes));
    assert!(first.is_err() || second.is_ok(), "sealing broke a sound maplet");
});
