//! Random operations against the exact multiset of `testkit::model`, which documents the checks.
//!
//! A failing case is shrunk and printed as plain data. It becomes a named test before the bug is
//! fixed.

use koel::{Merge, Prefer};
use proptest::prelude::*;
use testkit::cases::{Case, Op, Setup, Universe, run};
use testkit::model::Model;

fn setup() -> impl Strategy<Value = Setup> {
    let rate = prop::sample::select(vec![0.03, 0.01, 0.001, 1e-5, 1e-8]);
    let prefer = prop::sample::select(vec![Prefer::Small, Prefer::Fast]);
    let universe =
        prop::sample::select(vec![Universe::Integers, Universe::Uniform, Universe::Crowded]);
    let counter_limit = prop::option::of(0_u64..=4);
    let shape = prop::option::of((0_u8..3, 1_u32..10));
    (1_u64..=64, rate, prefer, any::<bool>(), counter_limit, shape, universe).prop_map(
        |(capacity, rate, prefer, keyed, counter_limit, shape, universe)| Setup {
            capacity,
            rate,
            prefer,
            keyed,
            counter_limit,
            shape,
            universe,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let (key, few, many) = (any::<u8>, 0_usize..8, 0_u8..120);
    let other = prop::collection::vec((key(), 0_u8..8), 0..40);
    let counts = prop::sample::select(vec![Merge::Sum, Merge::Max]);
    prop_oneof![
        8 => key().prop_map(|key| Op::Insert(vec![key])),
        3 => (key(), few).prop_map(|(key, times)| Op::Insert(vec![key; times])),
        3 => (key(), many.clone()).prop_map(|(key, count)| Op::Insert(run(key, count))),
        3 => key().prop_map(Op::InsertUnique),
        8 => key().prop_map(Op::Remove),
        2 => (key(), many).prop_map(|(key, count)| Op::RemoveAll(run(key, count))),
        1 => key().prop_map(Op::Count),
        1 => Just(Op::Clear),
        2 => Just(Op::Reload),
        2 => Just(Op::View),
        2 => (other, counts, any::<bool>())
            .prop_map(|(other, counts, as_view)| Op::Merge { other, counts, as_view }),
        2 => Just(Op::Check),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    (setup(), prop::collection::vec(op(), 0..40)).prop_map(|(setup, ops)| Case { setup, ops })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn after_any_operations_a_filter_equals_its_multiset(case in case()) {
        Model::run(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn equal_operations_give_equal_bytes(case in case()) {
        prop_assert_eq!(Model::run(&case), Model::run(&case));
    }

    #[test]
    fn reloading_after_every_step_changes_no_later_byte(case in case()) {
        let ops = case.ops.iter().flat_map(|op| [op.clone(), Op::Reload]).collect();
        let reloaded = Case { ops, ..case.clone() };
        prop_assert_eq!(Model::run(&case), Model::run(&reloaded));
    }
}
