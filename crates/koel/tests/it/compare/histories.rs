//! Differences between filters that grew, against the true sets of their keys.

use std::collections::BTreeSet;

use koel::{CuckooFilter, Merge, Prefer};
use testkit::keys::hashes;

/// A filter and the keys that are in it.
#[derive(Clone)]
struct Known {
    filter: CuckooFilter,
    keys: BTreeSet<u64>,
}

impl Known {
    fn new(empty: &CuckooFilter, keys: impl IntoIterator<Item = u64>) -> Self {
        let mut new = Self { filter: empty.clone(), keys: BTreeSet::new() };
        new.insert(keys);
        new
    }

    fn insert(&mut self, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            assert!(self.keys.insert(key));
            self.filter.insert(&key).unwrap();
        }
    }

    fn remove(&mut self, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            assert!(self.keys.remove(&key) && self.filter.remove(&key));
        }
    }

    fn merge(&mut self, other: &Self) {
        assert!(self.keys.is_disjoint(&other.keys));
        self.keys.extend(&other.keys);
        self.filter.merge(&other.filter, Merge::Sum).unwrap();
    }

    fn shrunk(mut self) -> Self {
        self.filter.shrink_to_fit();
        self
    }
}

/// Pairs of filters with `n` keys or so, each with what became of them.
fn histories(empty: &CuckooFilter, seed: u64, n: usize) -> Vec<(&'static str, Known, Known)> {
    let all: Vec<u64> = hashes(seed, 4 * n as u64).collect();
    let some = n / 50;
    let forth = |keys: &[u64]| Known::new(empty, keys.iter().copied());
    let back = |keys: &[u64]| Known::new(empty, keys.iter().rev().copied());
    let whole = forth(&all[..n]);
    let changed = |removed: &[u64], added: &[u64]| {
        let mut copy = whole.clone();
        copy.remove(removed.iter().copied());
        copy.insert(added.iter().copied());
        copy
    };
    let emptied = |removed: usize, rest: usize| {
        let mut filter = forth(&all[..rest]);
        filter.remove(all[..removed].iter().copied());
        filter
    };
    let merged = |cut: usize, end: usize| {
        let mut union = forth(&all[..cut]);
        union.merge(&back(&all[cut..end]));
        union
    };
    vec![
        ("one key replaced", whole.clone(), changed(&all[n / 2..=n / 2], &all[n..=n])),
        ("one of the first keys removed", whole.clone(), changed(&all[7..8], &[])),
        ("equal keys in another order", whole.clone(), back(&all[..n])),
        ("the first keys replaced", whole.clone(), changed(&all[..some], &all[n..n + some])),
        (
            "first keys removed from two copies",
            changed(&all[..some], &[]),
            changed(&all[some..3 * some], &all[n..n + some]),
        ),
        ("built from other keys at both ends", forth(&all[..n]), back(&all[some..n + some])),
        ("copy that grew on", whole.clone(), changed(&[], &all[n..3 * n])),
        ("first keys removed, and built without them", emptied(some, n), back(&all[some..n + 9])),
        (
            "shrunk, and built without",
            emptied(3 * n, 4 * n).shrunk(),
            back(&all[3 * n - some..4 * n]),
        ),
        ("shrunk, and a changed copy of it", emptied(3 * n, 4 * n).shrunk(), {
            let mut copy = emptied(3 * n, 4 * n).shrunk();
            copy.remove(all[3 * n..3 * n + some].iter().copied());
            copy.insert(all[..2 * some].iter().copied());
            copy
        }),
        ("merged in two ways", merged(n / 3, n), merged(n / 2, n + some)),
        ("merged, and built at once", merged(n / 5, n), forth(&all[some..n])),
        ("nothing in common", forth(&all[..n]), forth(&all[n..2 * n])),
        ("one is small", forth(&all[..n]), forth(&all[..some])),
        ("one is empty", forth(&all[..n]), forth(&[])),
    ]
}

/// The keys of one only.
fn truth(one: &Known, other: &Known) -> [usize; 2] {
    [one.keys.difference(&other.keys).count(), other.keys.difference(&one.keys).count()]
}

/// Keys of one filter alone were once bounded by an estimate: a difference of some hundred keys was
/// none.
#[test]
fn differences_between_grown_filters_are_those_of_their_keys() {
    for (rate, prefer) in [(0.05, Prefer::Small), (0.05, Prefer::Fast), (0.001, Prefer::Small)] {
        let large = CuckooFilter::builder(1_000_000, rate).prefer(prefer).grow_from(1000);
        let small = CuckooFilter::builder(1000, rate).prefer(prefer).growable();
        for builder in [large, small] {
            for (name, one, other) in histories(&builder.build().unwrap(), 1, 50_000) {
                let [found, back] = [(&one, &other), (&other, &one)]
                    .map(|(one, other)| one.filter.compare(&other.filter).unwrap());
                let surplus = [found.surplus_first(), found.surplus_second()];
                let case = format!("{rate} {prefer:?} {name}: {found:?}");
                assert_eq!(surplus, [back.surplus_second(), back.surplus_first()], "{case}");
                let estimates = [found.only_first(), found.only_second()];
                let most = one.keys.len().max(other.keys.len()) as f64;
                let common = one.keys.intersection(&other.keys).count() as f64;
                let off = (found.common().value - common).abs();
                assert!(off <= most * 0.01, "{off} {common} {case}");
                for (i, truth) in truth(&one, &other).into_iter().enumerate() {
                    let off = (surplus[i] as f64 - truth as f64).abs();
                    assert!(off <= most * rate.min(0.004) / 2.0 + 4.0, "{off} {truth} {case}");
                    assert!(truth == 0 || surplus[i] > 0, "{case}");
                    let off = (estimates[i].value - truth as f64).abs();
                    assert!(off <= most * 0.01, "{off} {truth} {case}");
                }
            }
        }
    }
}

/// The first lines of a list replaced by others, as the README compares lists.
#[test]
fn a_hundred_keys_replaced_are_a_hundred_on_each_side() {
    let empty = CuckooFilter::builder(1_000_000_000, 0.001).grow_from(1000).build().unwrap();
    let of = |numbers: std::ops::Range<u32>| {
        let mut filter = empty.clone();
        let keys: Vec<String> = numbers.map(|number| format!("{number}.example.com")).collect();
        keys.chunks(4096).for_each(|part| filter.insert_many(part).unwrap());
        filter
    };
    let found = of(0..100_000).compare(&of(100..100_100)).unwrap();
    assert_eq!((found.surplus_first(), found.surplus_second()), (100, 100));
    assert_eq!(found.only_first().value.round(), 100.0);
}

/// A key whose buckets were full was once counted as a copy of an old, short entry that matched it.
/// So that entry stayed when its own key was removed: of the first thousand keys of a million, a
/// fifth was still found.
#[test]
fn removed_keys_are_found_again_at_the_false_positive_rate() {
    for builder in [
        CuckooFilter::builder(1000, 0.001).growable(),
        CuckooFilter::builder(1_000_000, 0.001).grow_from(1000),
    ] {
        let mut filter = builder.build().unwrap();
        (0..300_000_u64).for_each(|key| filter.insert(&key).unwrap());
        for part in [0..1000, 1000..40_000, 290_000..300_000] {
            let expected = filter.false_positive_rate() * part.clone().count() as f64;
            assert!(part.clone().all(|key: u64| filter.remove(&key)));
            let found = part.filter(|key| filter.contains(key)).count() as f64;
            assert!(found <= expected + 5.0 * expected.sqrt() + 2.0, "{found} {expected}");
        }
    }
}

#[test]
fn a_single_difference_is_seen_in_nearly_every_trial() {
    let empty = CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build().unwrap();
    let seen = (0..100_u64).filter(|&seed| {
        let keys: Vec<u64> = hashes(seed, 5001).collect();
        let one = Known::new(&empty, keys[..5000].iter().copied());
        let other = Known::new(&empty, keys[1..].iter().rev().copied());
        let found = one.filter.compare(&other.filter).unwrap();
        (found.surplus_first(), found.surplus_second()) == (1, 1)
    });
    assert!(seen.count() >= 99);
}
