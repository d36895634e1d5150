//! Fuzzes what the module does with any bytes.
#![no_main]

#[path = "../../crates/koel-valkey/tests/it/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::fuzzed_bytes(bytes));
