//! Any bytes as manifest, logs and hints of a store: refused with a reason, or no value but those
//! with a right checksum. As they are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::stores::fuzzed_bytes;

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes));
