//! Batches grow a filter as single inserts do.

use koel::CuckooFilter;
use testkit::keys::{self, all_at, at};

use super::{builders, insert};

#[test]
fn a_batch_grows_the_table_to_the_size_it_needs() {
    for builder in builders(60_000, 0.01) {
        let hashes: Vec<u64> = keys::hashes(1, 60_000).chain(keys::hashes(1, 500)).collect();
        for batch in [1, 100, 7000, hashes.len()] {
            let (mut one, mut many) = (builder.build().unwrap(), builder.build().unwrap());
            for part in hashes.chunks(batch) {
                part.iter().for_each(|&hash| one.insert(&at(hash)).unwrap());
                many.insert_many(&all_at(part)).unwrap();
                assert!(part.iter().all(|&hash| many.contains(&at(hash))));
            }
            assert_eq!(many.len(), one.len());
            let (buckets, needed) = (many.buckets() as f64, one.buckets() as f64);
            assert!((0.99..1.02).contains(&(buckets / needed)), "{buckets} for {needed}");
            assert!(hashes.iter().rev().take(500).all(|&hash| many.count(&at(hash)) >= 2));
            assert!(hashes.iter().all(|&hash| many.remove(&at(hash))));
            many.verify().unwrap();
        }
    }
}

/// A stream arrives in slices of any length.
#[test]
fn the_cuts_between_small_batches_do_not_change_the_bytes() {
    for builder in builders(60_000, 0.01) {
        let hashes: Vec<u64> = keys::hashes(1, 60_000).collect();
        let filters = [1, 63, 1000, 4095].map(|batch| {
            let mut filter = builder.build().unwrap();
            hashes.chunks(batch).for_each(|part| filter.insert_many(&all_at(part)).unwrap());
            filter.to_bytes()
        });
        assert!(filters.iter().all(|bytes| *bytes == filters[0]));
    }
}

#[test]
fn copies_make_a_table_at_most_a_quarter_too_large() {
    for builder in builders(60_000, 0.001) {
        let distinct: Vec<u64> = keys::hashes(1, 20_000).collect();
        let (mut one, mut many) = (builder.build().unwrap(), builder.build().unwrap());
        insert(&mut one, distinct.iter().copied());
        let copies: Vec<u64> = distinct.iter().cycle().take(400_000).copied().collect();
        many.insert_many(&all_at(&copies)).unwrap();
        // A second copy takes a free slot if there is one.
        let entries = many.slots_in_use() as f64 / one.slots_in_use() as f64;
        let buckets = many.buckets() as f64 / one.buckets() as f64;
        assert!(buckets < 1.3 * entries, "{buckets}, {entries}");
        assert_eq!(many.len(), 400_000);
    }
}

#[test]
fn batched_unique_inserts_detect_duplicates_while_the_filter_starts_to_grow() {
    let builder = CuckooFilter::builder(1000, 0.001).growable();
    // Each key is inserted twice, some twice within one batch.
    let hashes: Vec<u64> =
        keys::hashes(1, 2000).flat_map(|hash| [hash, hash]).chain(keys::hashes(1, 2000)).collect();
    let (mut one, mut many) = (builder.build().unwrap(), builder.build().unwrap());
    let new: Vec<bool> = hashes.iter().map(|&hash| one.insert_unique(&at(hash)).unwrap()).collect();
    let mut added = vec![false; hashes.len()];
    many.insert_unique_many(&all_at(&hashes), &mut added).unwrap();
    assert!(added == new && many.has_grown() && one.to_bytes() == many.to_bytes());
    assert!(added.iter().filter(|&&added| added).count() > 1990);
}
