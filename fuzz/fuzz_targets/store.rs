//! Fuzzes `testkit::fuzz::STORE`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::STORE.run)(bytes));
