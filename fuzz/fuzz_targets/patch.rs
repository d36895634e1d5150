//! Fuzzes `testkit::fuzz::PATCH`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::PATCH.run)(bytes));
