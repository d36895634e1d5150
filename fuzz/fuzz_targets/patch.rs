//! Any bytes as a patch of a small filter: refused with a reason, or what the format says. As they
//! are, and as the lists of a patch whose digests and checksum fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::patches::fuzzed_bytes;

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes));
