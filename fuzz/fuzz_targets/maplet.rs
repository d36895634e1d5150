//! Fuzzes `testkit::fuzz::MAPLET`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::MAPLET.run)(bytes));
