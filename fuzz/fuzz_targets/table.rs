//! Fuzzes `testkit::fuzz::TABLE`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::TABLE.run)(bytes));
