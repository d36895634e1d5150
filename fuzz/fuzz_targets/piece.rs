//! Fuzzes `testkit::fuzz::PIECE`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (testkit::fuzz::PIECE.run)(bytes));
