//! Batched calls of plain filters equal single calls; `alike.rs` has what all types promise.

use koel::{CuckooFilter, Prefer};
use testkit::keys::{self, all_at, at};

use crate::subject::Subject;

fn hashes(count: usize) -> Vec<u64> {
    keys::hashes(3, count as u64).collect()
}

/// Filters large enough for planned blocks of removals. Entries take one or two slots, with or
/// without a counter: copies inserted into a full filter get only one slot.
#[test]
fn batched_removals_take_counted_copies_first() {
    for mut filter in CuckooFilter::fixed(25_000) {
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
