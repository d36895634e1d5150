//! Unions of counting filters: they count like one filter, and never less than either input.

use koel::{CountingFilter, CountingView, ImageError, Merge, MergeError};
use testkit::keys;
use testkit::keys::{all_at, at};

/// The counts of the key with this number in both filters: most keys are in one of them, once.
fn times(number: usize) -> [u64; 2] {
    match number % 60 {
        0 => [1000, 3],
        1..3 => [2, 900],
        3..10 => [5, 5],
        10..30 => [1, 0],
        _ => [0, 1],
    }
}

fn filled(filter: CountingFilter, which: usize, keys: usize) -> CountingFilter {
    filled_in_order(filter, which, (0..keys).collect())
}

fn filled_in_order(
    mut filter: CountingFilter,
    which: usize,
    numbers: Vec<usize>,
) -> CountingFilter {
    let most = numbers.iter().max().map_or(0, |most| most + 1);
    let hashes: Vec<u64> = keys::hashes(3, most as u64).collect();
    for number in numbers {
        filter.add(&at(hashes[number]), times(number)[which]).unwrap();
    }
    filter
}

#[test]
fn a_union_of_filters_that_grew_separately_counts_no_key_too_low() {
    for (rate, bits) in [(0.05, 1), (0.05, 3), (0.001, 8), (0.000_1, 30)] {
        let builder = CountingFilter::builder(1_000_000, rate).count_bits(bits).grow_from(1000);
        let empty = builder.build().unwrap();
        for sizes in [[20_000, 20_000], [20_000, 3000], [3000, 20_000], [100, 20_000]] {
            // Some keys were inserted again after growth.
            let filters = [0, 1].map(|which| {
                let first = filled(empty.clone(), which, sizes[which]);
                filled(first, which, sizes[which].min(2000))
            });
            for counts in [Merge::Sum, Merge::Max] {
                let mut union = filters[0].clone();
                union.merge(&filters[1], counts).unwrap();
                assert_eq!(union.verify(), Ok(()), "{union:?}");
                let (mut low, mut high) = (0, 0);
                for hash in keys::hashes(3, 20_000) {
                    let [ours, theirs] = filters.each_ref().map(|filter| filter.count(&at(hash)));
                    let least = if counts == Merge::Sum { ours + theirs } else { ours.max(theirs) };
                    low += usize::from(union.count(&at(hash)) < least);
                    high += usize::from(union.count(&at(hash)) > least);
                }
                assert_eq!(low, 0, "{counts:?} of {filters:?}");
                // The union drops bits that only one filter stores for a key, and an entry in two
                // halves counts twice.
                let wrong = f64::from(u32::try_from(high).unwrap()) / 20_000.0;
                assert!(wrong < 0.01 + 4.0 * rate, "{counts:?} of {filters:?}: {wrong}");
            }
            let mut sum = filters[0].clone();
            sum.merge(&filters[1], Merge::Sum).unwrap();
            assert_eq!(sum.len(), filters[0].len() + filters[1].len());
            for (number, hash) in keys::hashes(3, 20_000).enumerate() {
                for which in [0, 1] {
                    let came = usize::from(number < sizes[which])
                        + usize::from(number < sizes[which].min(2000));
                    let copies = times(number)[which] * came as u64;
                    assert!((0..copies).all(|_| sum.remove(&at(hash))), "{sum:?}");
                }
            }
            assert!(sum.is_empty());
        }
    }
}

/// The second filter gets the keys in reverse order, so that each stores more bits than the other
/// for some keys.
#[test]
fn the_larger_of_two_counts_is_not_their_sum_when_entries_store_different_numbers_of_bits() {
    for (rate, bits) in [(0.02, 3), (0.001, 8)] {
        let builder = CountingFilter::builder(1_000_000, rate).count_bits(bits).grow_from(1000);
        let empty = builder.build().unwrap();
        let one = filled(empty.clone(), 0, 20_000);
        let other = filled_in_order(empty, 1, (0..20_000).rev().collect());
        for (ours, theirs) in [(&one, &other), (&other, &one)] {
            let mut larger = ours.clone();
            larger.merge(theirs, Merge::Max).unwrap();
            assert_eq!(larger.verify(), Ok(()));
            let counts = |hash| [ours, theirs].map(|filter| filter.count(&at(hash)));
            let (mut low, mut high) = (0, 0);
            for hash in keys::hashes(3, 20_000) {
                let most = counts(hash).into_iter().max().unwrap();
                low += usize::from(larger.count(&at(hash)) < most);
                high += usize::from(larger.count(&at(hash)) > most);
            }
            // Of the 3333 keys in both filters.
            assert!(low == 0 && high <= 10, "{low} too low and {high} too high: {ours:?}");
        }
    }
}

#[test]
fn incompatible_filters_are_refused_and_nothing_changes() {
    let builder = CountingFilter::builder(1000, 0.01);
    let (mut filter, before) = (builder.build().unwrap(), builder.build().unwrap());
    let refused = |filter: &mut CountingFilter, other: CountingFilter| {
        let refusal = filter.merge(&other, Merge::Sum).unwrap_err();
        assert!(*filter == before);
        refusal
    };
    let incompatible = |field| MergeError::Incompatible { field };
    let other = builder.clone().count_bits(4).build().unwrap();
    assert_eq!(refused(&mut filter, other), incompatible("layout"));
    let other = builder.clone().grow_from(1000).build().unwrap();
    assert_eq!(refused(&mut filter, other), incompatible("layout"));
    let other = CountingFilter::builder(2000, 0.01).build().unwrap();
    assert!(matches!(refused(&mut filter, other), MergeError::Sizes { .. }));
    let [first, second] = [1, 2].map(|seed| {
        let mut filter = before.clone();
        filter.insert_many(&all_at(&keys::hashes(seed, 1000).collect::<Vec<_>>())).unwrap();
        filter
    });
    let mut full = first.clone();
    assert!(matches!(full.merge(&second, Merge::Max), Err(MergeError::Full(_))));
    assert!(full == first);
    let mut bytes = first.to_bytes();
    *bytes.last_mut().unwrap() ^= 1;
    let view = CountingView::open(&bytes).unwrap();
    let damaged = ImageError::Checksum { part: "body" };
    assert_eq!(filter.merge(&view, Merge::Sum), Err(MergeError::Unsound(damaged)));
    assert!(filter == before);
}
