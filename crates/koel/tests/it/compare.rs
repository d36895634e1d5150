//! Comparing two filters: counts of entries are exact, counts of keys are estimates with a stated
//! standard error.

mod histories;

use std::collections::BTreeMap;

use koel::{Comparison, CountingFilter, CuckooFilter, Estimate, FilterView, Prefer};
use testkit::keys::hashes;

fn filter_of(rate: f64, seed: u64, keys: &[u64]) -> CuckooFilter {
    let builder = CuckooFilter::builder(20_000, rate).prefer(Prefer::Small).seed(seed);
    builder.build_from(keys).unwrap()
}

/// The keys of two filters, given how many are in the first only, the second only and both.
fn keys_of(seed: u64, [first, second, both]: [u64; 3]) -> [Vec<u64>; 2] {
    let keys: Vec<_> = hashes(seed, first + second + both).collect();
    let (of_first, rest) = keys.split_at(usize::try_from(first).unwrap());
    let (of_second, of_both) = rest.split_at(usize::try_from(second).unwrap());
    [of_first, of_second].map(|own| [own, of_both].concat())
}

/// Compares two filters in which each key has two copies. With one copy each, the number of copies
/// bounds the estimates, whose errors are then smaller than stated.
fn compared(rate: f64, seed: u64, sizes: [u64; 3]) -> Comparison {
    let [first, second] = keys_of(seed, sizes).map(|keys| filter_of(rate, seed, &keys.repeat(2)));
    first.compare(&second).unwrap()
}

/// Mean and mean square of the deviations over many pairs of filters, in standard errors.
fn deviations(
    pairs: &[Comparison],
    truth: f64,
    of: impl Fn(&Comparison) -> Estimate,
) -> (f64, f64) {
    let each = pairs.iter().map(|pair| {
        let estimate = of(pair);
        (estimate.value - truth) / estimate.standard_error
    });
    let (sum, squares) = each.fold((0.0, 0.0), |(sum, squares), z| (sum + z, squares + z * z));
    (sum / pairs.len() as f64, squares / pairs.len() as f64)
}

#[test]
fn estimates_are_unbiased_and_their_standard_errors_are_right() {
    // For similar filters, the errors of the union and of the intersection nearly cancel in the
    // Jaccard index.
    for [a, b, c] in [[6000, 9000, 5000], [1000, 500, 18_000]] {
        let whole = (a + b + c) as f64;
        let pairs: Vec<_> = (0..400).map(|seed| compared(0.03, seed, [a, b, c])).collect();
        let check = |name: &str, truth: f64, of: fn(&Comparison) -> Estimate| {
            let (mean, square) = deviations(&pairs, truth, of);
            // 400 samples: the mean is within 5 sigma of 0, the variance within 5 sigma of 1.
            assert!(mean.abs() < 5.0 / 20.0, "{name}: off by {mean:.2} standard errors on average");
            assert!(
                (square - 1.0).abs() < 5.0 * (2.0_f64 / 400.0).sqrt(),
                "{name}: variance {square:.2}"
            );
        };
        check("common", c as f64, Comparison::common);
        check("union", whole, Comparison::union);
        check("only first", a as f64, Comparison::only_first);
        check("only second", b as f64, Comparison::only_second);
        check("jaccard", c as f64 / whole, Comparison::jaccard);
    }
}

/// No part is larger than its whole. The estimates of a filter of 5.87 million keys and of its
/// successor once said that 999,944 keys were added, 1,000,067 of them new.
#[test]
fn estimates_never_contradict_the_exact_numbers_of_copies() {
    let mut tight = 0;
    for (rate, seed) in
        [0.2, 0.03, 0.001].into_iter().flat_map(|rate| (0..15).map(move |i| (rate, i)))
    {
        let grown = seed % 3 == 0;
        let sizes =
            [[0, 4000, 9000], [3000, 0, 9000], [0, 0, 9000], [700, 6000, 0], [0, 1, 14_000]];
        let sizes = sizes[usize::try_from(seed % 5).unwrap()];
        let [first, second] = keys_of(seed, sizes).map(|keys| {
            let builder = CuckooFilter::builder(20_000, rate);
            let builder = if grown { builder.grow_from(1000) } else { builder };
            let mut filter = builder.build().unwrap();
            filter.insert_many(&keys).unwrap();
            filter
        });
        let found = first.compare(&second).unwrap();
        let [removed, added] = [found.surplus_first(), found.surplus_second()];
        let case = format!("{rate} {seed} {sizes:?} {found:?}");
        assert_eq!(first.len() + added, second.len() + removed, "{case}");
        let [a, b, c, all] =
            [found.only_first(), found.only_second(), found.common(), found.union()]
                .map(|estimate| estimate.value);
        assert!(a >= 0.0 && a <= removed as f64 && b >= 0.0 && b <= added as f64, "{case}");
        for (filter, own) in [(&first, a), (&second, b)] {
            let most = filter.len() as f64 + 1e-6;
            assert!(c >= 0.0 && own + c <= most && filter.distinct_estimate() <= most, "{case}");
        }
        assert!((a + b + c - all).abs() < 1e-6 && (0.0..=1.0).contains(&found.jaccard().value));
        tight += u64::from(a == removed as f64 || b == added as f64);
    }
    assert!(tight > 5, "the bounds hardly matter here: {tight}");
}

/// What was only added to is a superset of what it was.
#[test]
fn a_grown_snapshot_is_compared_exactly_in_copies() {
    let keys: Vec<_> = hashes(9, 30_000).collect();
    for rate in [0.05, 0.01, 0.001] {
        let builder = CuckooFilter::builder(1_000_000, rate).grow_from(1000);
        let mut before = builder.build().unwrap();
        before.insert_many(&keys[..25_000]).unwrap();
        let mut after = before.clone();
        after.insert_many(&keys[25_000..]).unwrap();
        let changes = before.compare(&after).unwrap();
        assert_eq!((changes.surplus_first(), changes.surplus_second()), (0, 5000), "{rate}");
        assert!(changes.only_second().value <= 5000.0 && changes.common().value <= 25_000.0);
    }
}

#[test]
fn equal_filters_compare_equal_and_so_do_empty_ones() {
    let filter = filter_of(0.001, 0, &hashes(1, 5000).collect::<Vec<_>>());
    let same = filter.compare(&filter).unwrap();
    assert_eq!((same.surplus_first(), same.surplus_second()), (0, 0));
    assert_eq!(same.jaccard().value, 1.0);
    assert!((same.common().value - filter.distinct_estimate()).abs() < 1e-6);
    assert_eq!(same.only_first().value, 0.0);
    let empty = filter_of(0.001, 0, &[]);
    assert_eq!(empty.compare(&empty).unwrap().jaccard().value, 1.0);
    let one_sided = filter.compare(&empty).unwrap();
    assert_eq!(one_sided.jaccard().value, 0.0);
    assert_eq!(one_sided.surplus_first(), 5000);
}

#[test]
fn a_view_is_compared_like_its_filter() {
    let (keys, others): (Vec<_>, Vec<_>) = (hashes(2, 800).collect(), hashes(3, 800).collect());
    let (one, other) = (filter_of(0.001, 0, &keys), filter_of(0.001, 0, &others));
    let bytes = other.to_bytes();
    let view = FilterView::open(&bytes).unwrap();
    assert_eq!(one.compare(&view).unwrap(), one.compare(&other).unwrap());
}

#[test]
fn entries_lists_every_entry_and_the_counts_add_up() {
    let keys: Vec<_> = hashes(6, 2000).collect();
    let mut filter = filter_of(0.03, 0, &keys);
    for _ in 0..5 {
        filter.insert_many(&keys[..300]).unwrap();
    }
    let entries: BTreeMap<_, _> =
        filter.entries().map(|entry| ((entry.bucket, entry.fingerprint), entry.count)).collect();
    assert_eq!(entries.len(), filter.entries().count(), "an entry came twice");
    assert_eq!(entries.values().sum::<u64>(), filter.len());
    assert!(entries.values().all(|&count| count > 0));
}

#[test]
fn views_and_counting_filters_hold_the_same_exactly_if_no_entry_differs() {
    let keys: Vec<_> = hashes(6, 15_000).collect();
    let backwards: Vec<_> = keys.iter().rev().copied().collect();
    let (one, mut other) = (filter_of(0.001, 0, &keys), filter_of(0.001, 0, &backwards));
    let same = |other: &CuckooFilter| {
        let bytes = other.to_bytes();
        one.holds_the_same(&FilterView::open(&bytes).unwrap())
    };
    assert!(same(&other).unwrap() && one != other);
    other.insert(&keys[0]).unwrap();
    other.remove(&keys[1]);
    assert!(!same(&other).unwrap() && one.len() == other.len());
    assert!(same(&filter_of(0.01, 0, &keys)).is_err());

    let counting = |keys: &[u64]| {
        let mut filter = CountingFilter::builder(20_000, 0.001).count_bits(2).build().unwrap();
        for (number, key) in keys.iter().enumerate() {
            filter.add(key, 1 + key % 9).unwrap();
            filter.add(&keys[number / 2], 1).unwrap();
        }
        filter
    };
    let (one, mut other) = (counting(&keys), counting(&keys));
    other.remove(&keys[9]);
    assert!(!one.holds_the_same(&other).unwrap());
    other.insert(&keys[9]).unwrap();
    assert!(one.holds_the_same(&other).unwrap());
}

#[test]
fn a_comparison_shows_a_change_of_corrections_alone() {
    let keys: Vec<_> = hashes(6, 15_000).collect();
    let (one, mut other) = (filter_of(0.02, 0, &keys), filter_of(0.02, 0, &keys));
    assert!(!one.compare(&other).unwrap().shows_change());
    let wrong: Vec<u64> = hashes(7, 90_000).filter(|key| one.contains(key)).take(9).collect();
    wrong.iter().for_each(|key| assert!(other.refute(key).unwrap()));
    assert_eq!([one.corrections_beyond(&other), other.corrections_beyond(&one)], [0, 9]);
    assert!(one.compare(&other).unwrap().shows_change());
}
