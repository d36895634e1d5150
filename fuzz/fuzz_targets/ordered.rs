//! Any bytes as manifest, logs and tables of an ordered store: refused with a reason, or all ways
//! of reading it agree. As they are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::ordered::fuzzed_bytes;

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes));
