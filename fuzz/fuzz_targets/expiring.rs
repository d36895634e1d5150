//! Any operations on a small expiring filter, beside the model that says what must come of them.
//! Bytes that start as a file are read as one: refused with a reason, or a sound filter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::exercise::fuzzed_bytes;
use testkit::expiring::{arbitrary_bytes, run};

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"koel") {
        fuzzed_bytes(bytes, arbitrary_bytes);
    } else {
        run(bytes);
    }
});
