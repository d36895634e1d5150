//! Fuzzes `testkit::fuzz::MODEL`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::MODEL.run)(bytes));
