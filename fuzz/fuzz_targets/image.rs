//! Any bytes: refused with a reason, or a sound filter that takes whatever is done to it.
//!
//! The first try is almost always stopped by a checksum. The second has the checksums fitted to the
//! bytes, and so tries every other check.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::exercise::{arbitrary_bytes, operations};
use testkit::image::reseal;

fuzz_target!(|bytes: &[u8]| {
    arbitrary_bytes(bytes, operations(bytes));
    let mut sealed = bytes.to_vec();
    reseal(&mut sealed);
    arbitrary_bytes(&sealed, operations(bytes));
});
