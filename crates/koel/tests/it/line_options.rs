//! How a line becomes a key: the vectors of docs/FORMAT.md, and what a filter stores of it.

use std::borrow::Cow;

use koel::{CountingFilter, CuckooFilter, FilterView, LineOptions, Maplet, Merge, MergeError};
use proptest::prelude::*;

const FORMAT: &str = include_str!("../../../../docs/FORMAT.md");

fn options(bits: u32) -> LineOptions {
    let has = |bit| bits & bit != 0;
    LineOptions::default().ignore_case(has(1)).trim(has(2)).keep_cr(has(4))
}

fn all() -> impl Iterator<Item = LineOptions> {
    (0..8).map(options)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.split_whitespace().collect();
    let digits = digits.concat();
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16))
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn the_line_vectors_match_the_format() {
    let table = FORMAT.lines().skip_while(|line| !line.starts_with("| line | bits"));
    let rows: Vec<_> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 19);
    for row in rows {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let options = options(cells[2].parse().unwrap());
        assert_eq!(options.key(&bytes(cells[1])), bytes(cells[3]), "{row}");
    }
}

#[test]
fn every_kind_of_filter_stores_its_line_options_in_one_byte() {
    for (bits, options) in (0_u8..).zip(all()) {
        let filter = CuckooFilter::builder(100, 0.01).line_options(options).build().unwrap();
        let image = filter.to_bytes();
        assert_eq!(image[136..152], [&[bits][..], &[0; 15]].concat());
        assert_eq!(FilterView::open(&image).unwrap().line_options(), options);
        assert_eq!(CuckooFilter::from_bytes(&image).unwrap(), filter);
        let grown = CuckooFilter::builder(100, 0.01).line_options(options).growable();
        let mut grown = grown.build().unwrap();
        grown.try_extend(0..10_000_u32).unwrap();
        grown.shrink_to_fit();
        grown.clear();
        assert_eq!(grown.line_options(), options);
        let maplet = Maplet::builder(100, 0.01, 8).line_options(options).build().unwrap();
        assert_eq!(Maplet::from_bytes(&maplet.to_bytes()).unwrap().line_options(), options);
        let counting = CountingFilter::builder(100, 0.01).line_options(options).build().unwrap();
        assert_eq!(CountingFilter::from_bytes(&counting.to_bytes()).unwrap(), counting);
    }
}

#[cfg(feature = "std")]
#[test]
fn a_shared_filter_keeps_the_line_options() {
    for options in all() {
        let filter = CuckooFilter::builder(100, 0.01).line_options(options).build().unwrap();
        let shared = koel::ConcurrentFilter::try_from(filter).unwrap();
        assert_eq!(shared.line_options(), options);
        assert_eq!(shared.snapshot().unwrap().line_options(), options);
    }
}

#[test]
fn filters_whose_lines_became_keys_in_different_ways_are_neither_merged_nor_compared() {
    for (first, second) in all().flat_map(|first| all().map(move |second| (first, second))) {
        let build = |options| CuckooFilter::builder(100, 0.01).line_options(options).build();
        let (mut filter, other) = (build(first).unwrap(), build(second).unwrap());
        let expected = if first == second {
            Ok(())
        } else {
            Err(MergeError::Incompatible { field: "line options" })
        };
        assert_eq!(filter.compare(&other).map(|_| ()), expected);
        assert_eq!(filter.merge(&other, Merge::Sum), expected);
        assert_eq!(filter.line_options(), first);
    }
}

/// The same rules for text, written with the methods of `str`.
fn expected(text: &str, options: LineOptions) -> String {
    let text = if options.keeps_cr() { text } else { text.strip_suffix('\r').unwrap_or(text) };
    let text = if options.trims() { text.trim() } else { text };
    // `str::to_lowercase` looks at neighbours for the final sigma, which then is an ordinary one.
    if options.ignores_case() {
        text.to_lowercase().replace('\u{3c2}', "\u{3c3}")
    } else {
        text.to_owned()
    }
}

proptest! {
    #[test]
    fn keys_of_text_are_those_of_the_standard_library(
        text in "[\\PC\\s\\r \u{c9}\u{e9}\u{3a3}\u{3c2}\u{130}\u{1e9e}K]{0,12}\\r{0,2}",
        bits in 0_u32..8,
    ) {
        let options = options(bits);
        let expected = expected(&text, options);
        prop_assert_eq!(&*options.key(text.as_bytes()), expected.as_bytes());
    }

    /// A key that is asked again as a line is the same key, unless a CR was kept away.
    #[test]
    fn a_key_is_its_own_key(
        line in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'A')], 0..12),
        bits in 0_u32..8,
    ) {
        let options = options(bits);
        let key = options.key(&line).into_owned();
        if !key.ends_with(b"\r") || options.keeps_cr() {
            prop_assert_eq!(options.key(&key), Cow::Borrowed(&key[..]));
        }
    }
}
