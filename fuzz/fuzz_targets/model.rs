//! Any operations on any small filter, beside the exact multiset that says what must come of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testkit::cases::Case;
use testkit::model::Model;

fuzz_target!(|bytes: &[u8]| {
    Model::run(&Case::decode(bytes, 24));
});
