//! Fuzzes `testkit::fuzz::IMAGE`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::IMAGE.run)(bytes));
