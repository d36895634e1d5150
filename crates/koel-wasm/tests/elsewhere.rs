//! Filters elsewhere in a program without the feature `fast` of `koel`, as koel-filter/remote is:
//! `cargo test -p koel-wasm --no-default-features --features remote --test elsewhere`.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::ops::Range;

use koel::{CuckooFilter, Remote, RemoteOptions};

/// `printf 'ada\ngrace\n' | koel build --keys 8 --fpr 0.01 -o FILE`: semi-sorted.
const FILE: &str = "\
    6b6f656c0d0a1a0a0500c00000010406000a0004040000002b00000000000000000000000000000000000000\
    0000000000000000000000006b6f656c68617368000000000000000008000000000000007b14ae47e17a843f\
    0000000000000000020000000000000002000000000000000200000000000000000000000000000008000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    a0fa652f95b8d4ebfa195e654601887600000000000000000000000000000000000000000000000000000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    0000000000000000000000000000000000000000445505000000000000000000000000000000000000000000\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    0000000000000000000000000000000000402f0d000000000000000000000000000000000000000000000000\
    000000000000000000000000";

fn cut<'a>(file: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    &file[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
}

fn answers(file: &[u8], keys: &[&str]) -> Vec<bool> {
    let header = cut(file, &Remote::HEADER);
    let remote = Remote::open(header, cut(file, &Remote::tail(header).unwrap())).unwrap();
    let batch = remote.ask(keys, RemoteOptions::default()).unwrap();
    let fetched: Vec<_> = batch.ranges().iter().map(|range| cut(file, range)).collect();
    let mut found = vec![false; keys.len()];
    remote.answer(&batch, &fetched, &mut found).unwrap();
    found
}

/// The first bucket that a program decodes may be one of a filter elsewhere: nothing of a table was
/// made before. So this is the only test of its process.
#[test]
fn a_program_that_has_no_table_decodes_buckets() {
    let digit = |at: usize| u8::from_str_radix(&FILE[at..at + 2], 16).unwrap();
    let file: Vec<u8> = (0..FILE.len()).step_by(2).map(digit).collect();
    assert_eq!(answers(&file, &["ada", "grace", "mary"]), [true, true, false]);
    let mut filter = CuckooFilter::builder(3000, 0.01).build().unwrap();
    let names: Vec<_> = (0..6000).map(|number| format!("name{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    filter.insert_many(&names[..3000]).unwrap();
    let expected: Vec<_> = names.iter().map(|name| filter.contains(name)).collect();
    assert_eq!(answers(&filter.to_bytes(), &names), expected);
}
