//! Any bytes: refused with a reason, or a sound filter that takes whatever is done to it. As they
//! are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::exercise::{arbitrary_bytes, fuzzed_bytes};

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes, arbitrary_bytes));
