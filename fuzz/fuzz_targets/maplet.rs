//! Any bytes: refused with a reason, or a sound maplet or counting filter that takes whatever is
//! done to it. As they are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::exercise::fuzzed_bytes;
use testkit::maplets::with_values;

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes, with_values));
