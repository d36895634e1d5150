//! Batched calls equal single calls: in answers, bytes and failures.

use koel::{CuckooFilter, FilterView, FullError, Prefer};
use testkit::keys;
use testkit::keys::{all_at, at};

fn filters() -> impl Iterator<Item = CuckooFilter> {
    filters_for(2000)
}

fn filters_for(capacity: u64) -> impl Iterator<Item = CuckooFilter> {
    [
        (0.03, Prefer::Small),
        (0.001, Prefer::Small),
        (0.000_06, Prefer::Small),
        (1e-8, Prefer::Small),
    ]
    .into_iter()
    .chain([(0.03, Prefer::Fast), (0.002, Prefer::Fast), (1e-8, Prefer::Fast)])
    .map(move |(rate, prefer)| {
        CuckooFilter::builder(capacity, rate).prefer(prefer).build().unwrap()
    })
}

/// Lengths around the sizes of groups and blocks.
const LENGTHS: [usize; 13] = [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 500, 1500];

fn hashes(count: usize) -> Vec<u64> {
    keys::hashes(3, count as u64).collect()
}

#[test]
fn batched_inserts_make_the_bytes_of_single_inserts() {
    for (many, mut each) in filters().zip(filters()) {
        for length in LENGTHS {
            let mut many = many.clone();
            each.clear();
            let mut repeated = hashes(length);
            repeated.extend_from_within(..length / 3);
            many.insert_many(&all_at(&repeated)).unwrap();
            repeated.iter().for_each(|&hash| each.insert(&at(hash)).unwrap());
            assert_eq!(many, each, "{length} keys");
        }
    }
}

#[test]
fn batched_lookups_equal_single_lookups_in_filters_and_views() {
    for mut filter in filters() {
        let all = hashes(4000);
        filter.insert_many(&all_at(&all[..1500])).unwrap();
        (0..5).for_each(|_| filter.insert_many(&all_at(&all[..200])).unwrap());
        let bytes = filter.to_bytes();
        let view = FilterView::open(&bytes).unwrap();
        for length in LENGTHS {
            let asked = &all[1500 - length / 2..][..length];
            let (mut found, mut counts) = (vec![false; length], vec![9; length]);
            filter.contains_many(&all_at(asked), &mut found);
            filter.count_many(&all_at(asked), &mut counts);
            let (mut found_in_view, mut counts_in_view) = (vec![true; length], vec![8; length]);
            view.contains_many(&all_at(asked), &mut found_in_view);
            view.count_many(&all_at(asked), &mut counts_in_view);
            for (i, &hash) in asked.iter().enumerate() {
                assert_eq!(found[i], filter.contains(&at(hash)));
                assert_eq!(counts[i], filter.count(&at(hash)));
            }
            assert_eq!((found, counts), (found_in_view, counts_in_view));
        }
    }
}

#[test]
fn batched_removals_remove_present_keys_and_report_them() {
    for mut filter in filters() {
        let empty = filter.to_bytes();
        let all = hashes(1500);
        filter.insert_many(&all_at(&all[..1000])).unwrap();
        let mut each = filter.clone();
        let mut removed = vec![false; 1500];
        filter.remove_many(&all_at(&all), &mut removed);
        assert!(
            all.iter().zip(&removed).all(|(&hash, &removed)| each.remove(&at(hash)) == removed)
        );
        assert_eq!(filter, each);
        assert!(filter.to_bytes() == empty);
    }
}

/// Filters large enough for planned blocks of removals. Entries take one or two slots, with or
/// without a counter: copies inserted into a full filter get only one slot.
#[test]
fn batched_removals_take_counted_copies_first() {
    for mut filter in filters_for(25_000) {
        let empty = filter.to_bytes();
        let all = hashes(26_000);
        filter.insert_many(&all_at(&all[..18_000])).unwrap();
        (0..3).for_each(|_| filter.insert_many(&all_at(&all[..300])).unwrap());
        filter.insert_many(&all_at(&all[300..900])).unwrap();
        filter.insert_many(&all_at(&all[18_000..25_000])).unwrap();
        filter.insert_many(&all_at(&all[2000..2300])).unwrap();
        let mut each = filter.clone();
        for asked in [&all[..200], &all[100..26_000], &all[..18_000], &all[..300], &all] {
            let mut removed = vec![false; asked.len()];
            filter.remove_many(&all_at(asked), &mut removed);
            let expected: Vec<_> = asked.iter().map(|&hash| each.remove(&at(hash))).collect();
            assert_eq!(removed, expected);
            assert_eq!(filter, each);
        }
        assert!(filter.to_bytes() == empty);
    }
}

#[test]
fn batched_calls_hash_keys_of_every_type_like_single_calls() {
    let mut filter = CuckooFilter::builder(1000, 1e-9).sip_key([1; 16]).build().unwrap();
    let names: Vec<String> = (0..300).map(|i| format!("name {i}")).collect();
    filter.insert_many(&names).unwrap();
    filter.insert_many(&[1_u64, 2, 2]).unwrap();
    assert!(names.iter().all(|name| filter.count(name) == 1));
    let mut counts = [0; 3];
    filter.count_many(&[1_u64, 2, 3], &mut counts);
    assert_eq!(counts, [1, 2, 0]);
    let mut found = [false; 2];
    filter.contains_many(&["name 7", "name 300"], &mut found);
    assert_eq!(found, [true, false]);
    let mut removed = vec![false; 300];
    filter.remove_many(&names, &mut removed);
    assert!(removed.iter().all(|&removed| removed));
    assert_eq!(filter.len(), 3);
}

#[test]
fn a_failure_in_the_middle_keeps_the_earlier_keys() {
    let (mut many, mut each) = (CuckooFilter::with_capacity(500), CuckooFilter::with_capacity(500));
    let all = hashes(5000);
    let failed = many.insert_many(&all_at(&all));
    let one = all.iter().find_map(|&hash| each.insert(&at(hash)).err());
    assert!(matches!(failed, Err(FullError::Slots { .. })));
    assert_eq!(failed.err(), one);
    assert_eq!(many, each);
}

#[test]
#[should_panic(expected = "one answer for each key")]
fn answers_for_other_numbers_of_keys_are_refused() {
    CuckooFilter::with_capacity(10).contains_many(&["a", "b"], &mut [false]);
}

#[test]
fn batched_unique_inserts_equal_single_ones() {
    for (rate, prefer) in [(0.03, Prefer::Fast), (0.001, Prefer::Small), (1e-8, Prefer::Small)] {
        let all = hashes(5000);
        let asked: Vec<_> = all.iter().chain(&all[..700]).chain(&all[4990..]).copied().collect();
        let builder = CuckooFilter::builder(5000, rate).prefer(prefer);
        let (mut many, mut turns) = (builder.build().unwrap(), builder.build().unwrap());
        for part in asked.chunks(611) {
            let mut added = vec![true; part.len()];
            many.insert_unique_many(&all_at(part), &mut added).unwrap();
            let expected: Vec<_> =
                part.iter().map(|&hash| turns.insert_unique(&at(hash)).unwrap()).collect();
            assert_eq!(added, expected);
        }
        assert!(many == turns);
        assert!(many.len() <= 5000);
    }
}

#[test]
fn batched_unique_inserts_stop_at_the_first_key_without_room() {
    let all = hashes(3000);
    let builder = CuckooFilter::builder(1000, 0.001);
    let (mut many, mut turns) = (builder.build().unwrap(), builder.build().unwrap());
    let mut added = vec![true; all.len()];
    let full = many.insert_unique_many(&all_at(&all), &mut added).unwrap_err();
    let mut expected = Vec::new();
    let refused = loop {
        match turns.insert_unique(&at(all[expected.len()])) {
            Ok(new) => expected.push(new),
            Err(refused) => break refused,
        }
    };
    assert_eq!(full, refused);
    assert_eq!(added[..expected.len()], expected);
    assert!(added[expected.len()..].iter().all(|&added| !added));
    assert!(many == turns);
}
