//! Fuzzes `testkit::fuzz::EXPIRING`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::EXPIRING.run)(bytes));
