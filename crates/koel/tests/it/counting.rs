//! The counting filter: its limits. Submodules test its growth and its unions, `multiset.rs` and
//! `alike.rs` what it shares with other types.

mod grow;
mod merge;

use koel::{BuildError, CountingFilter, CountingView};
use testkit::keys::{self, at};

#[test]
fn impossible_builds_are_refused_with_a_reason() {
    let build = |rate, bits| CountingFilter::builder(1000, rate).count_bits(bits).build();
    assert_eq!(build(0.01, 0).unwrap_err(), BuildError::ValueBits { value_bits: 0 });
    assert_eq!(build(0.01, 41).unwrap_err(), BuildError::ValueBits { value_bits: 41 });
    assert!(matches!(build(0.0, 8).unwrap_err(), BuildError::Rate { .. }));
    assert!(matches!(build(1e-13, 8).unwrap_err(), BuildError::TooPrecise { .. }));
}

#[test]
fn the_build_parameters_are_in_the_bytes() {
    let builder = CountingFilter::builder(5000, 0.003);
    let keyed = builder.clone().sip_key([3; 16]);
    assert!(keyed.build().unwrap().hasher() != builder.build().unwrap().hasher());
    for builder in [keyed, builder.clone(), builder.grow_from(1000)] {
        let mut filter = builder.build().unwrap();
        filter.add("ada", 1_000_000).unwrap();
        let bytes = filter.to_bytes();
        let view = CountingView::open(&bytes).unwrap();
        assert_eq!((filter.capacity(), filter.requested_false_positive_rate()), (5000, 0.003));
        assert_eq!((view.capacity(), view.requested_false_positive_rate()), (5000, 0.003));
        assert!(view.hasher() == filter.hasher() && view.count("ada") == 1_000_000);
        assert_eq!([filter.size_in_bytes(), view.size_in_bytes()], [bytes.len(); 2]);
    }
}

#[test]
fn distinct_keys_are_estimated_whatever_their_counts() {
    for capacity in [100, 300_000] {
        let mut filter = CountingFilter::builder(capacity, 0.001).build().unwrap();
        for hash in keys::hashes(1, capacity) {
            filter.add(&at(hash), 1 + hash % 3).unwrap();
        }
        let off = filter.distinct_estimate() / capacity as f64 - 1.0;
        assert!(off.abs() < 0.01 + 2.0 / capacity as f64, "{off}");
    }
}
