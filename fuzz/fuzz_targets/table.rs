//! Any bytes as a table of an ordered store: refused with a reason, or the same entries whichever
//! way they are read. As they are, and with checksums that fit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::tables::fuzzed_bytes;

fuzz_target!(|bytes: &[u8]| fuzzed_bytes(bytes));
