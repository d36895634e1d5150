//! Fuzzes `testkit::fuzz::ORDERED`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::ORDERED.run)(bytes));
