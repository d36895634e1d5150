//! A filter built from all its keys in bulk answers like one filled by single inserts.

use koel::{BuildError, Builder, CuckooFilter, Prefer};
use testkit::keys::hashes;

/// Enough keys for a table of several segments.
const KEYS: u64 = 1_900_000;

fn builders() -> impl Iterator<Item = Builder<CuckooFilter>> {
    [Prefer::Fast, Prefer::Small]
        .map(|prefer| CuckooFilter::builder(KEYS, 0.001).prefer(prefer))
        .into_iter()
}

fn in_turn(builder: &Builder<CuckooFilter>, keys: &[u64]) -> CuckooFilter {
    let mut filter = builder.build().unwrap();
    filter.insert_many(keys).unwrap();
    filter
}

/// Compares everything that does not depend on the order of the inserts.
fn assert_alike(bulk: &CuckooFilter, turns: &CuckooFilter, keys: &[u64]) {
    assert_eq!(bulk.len(), turns.len());
    assert_eq!(bulk.false_positive_rate(), turns.false_positive_rate());
    let mut counts = [vec![0; keys.len()], vec![0; keys.len()]];
    bulk.count_many(keys, &mut counts[0]);
    turns.count_many(keys, &mut counts[1]);
    assert!(counts[0] == counts[1]);
    bulk.verify().unwrap();
    assert!(CuckooFilter::from_bytes(&bulk.to_bytes()).unwrap() == *bulk);
}

#[test]
fn a_bulk_build_answers_like_single_inserts() {
    let keys: Vec<_> = hashes(1, KEYS).collect();
    for builder in builders() {
        let bulk = builder.build_from(&keys).unwrap();
        assert!(bulk.segments() > 1);
        let hashes: Vec<_> = keys.iter().map(|key| bulk.hasher().hash(key)).collect();
        assert!(builder.build_from(&hashes).unwrap() == bulk);
        assert_alike(&bulk, &in_turn(&builder, &keys), &keys);
    }
}

#[test]
fn repeated_keys_are_counted() {
    let distinct: Vec<_> = hashes(2, KEYS / 2).collect();
    // One of eight keys is repeated, at most seven times.
    let further = (1..7).flat_map(|copy| distinct.iter().skip(copy * 1000).step_by(8));
    let keys: Vec<_> = distinct.iter().chain(further).copied().collect();
    for builder in builders() {
        let bulk = builder.build_from(&keys).unwrap();
        assert!(bulk.distinct_counters() > 0);
        assert_alike(&bulk, &in_turn(&builder, &keys), &keys);
    }
}

/// Keys that share an entry by chance take two slots either way. A bulk build once used a counter
/// for the second key in every segment with more keys than average, half of all segments.
#[test]
fn keys_that_share_an_entry_take_slots_before_counters() {
    let keys: Vec<_> = hashes(6, 8_000_000).collect();
    let builder = CuckooFilter::builder(8_000_000, 0.03);
    let (bulk, turns) = (builder.build_from(&keys).unwrap(), in_turn(&builder, &keys));
    assert!(bulk.segments() > 1 && turns.distinct_counters() > 200);
    let difference = bulk.distinct_counters().abs_diff(turns.distinct_counters());
    assert!(difference < turns.distinct_counters() / 50, "{difference}");
}

#[test]
fn a_table_of_one_segment_is_filled_by_single_inserts() {
    for count in [0, 1, 63, 64, 65, 5000] {
        let keys: Vec<_> = hashes(4, count).collect();
        let builder = CuckooFilter::builder(5000, 0.001);
        assert!(builder.build_from(&keys).unwrap() == in_turn(&builder, &keys));
    }
}

#[test]
fn too_many_keys_return_the_error_of_the_insert_that_fails() {
    let keys: Vec<_> = hashes(5, KEYS + KEYS / 20).collect();
    for builder in builders() {
        let mut filter = builder.build().unwrap();
        let full = filter.insert_many(&keys).unwrap_err();
        assert_eq!(builder.build_from(&keys).unwrap_err(), BuildError::Full(full));
    }
    let few = CuckooFilter::builder(KEYS, 0.001).counter_limit(10);
    let copies: Vec<_> = keys[..50].iter().cycle().take(1_000_000).copied().collect();
    assert!(matches!(few.build_from(&copies), Err(BuildError::Full(_))));
}

/// When a segment is full, the whole filter grows, as with single inserts.
#[test]
fn a_growable_filter_takes_more_keys_than_it_was_built_for() {
    let keys: Vec<_> = hashes(7, KEYS + KEYS / 10).collect();
    for builder in builders().map(Builder::growable) {
        assert!(builder.build().unwrap().segments() > 1);
        let bulk = builder.build_from(&keys).unwrap();
        assert!(bulk.has_grown());
        assert_alike(&bulk, &in_turn(&builder, &keys), &keys);
    }
}

#[test]
#[cfg(feature = "rayon")]
fn the_number_of_threads_does_not_change_the_bytes() {
    let keys: Vec<_> = hashes(6, KEYS).chain(hashes(6, 1000)).collect();
    for builder in builders() {
        let one = builder.build_from(&keys).unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let several = pool.install(|| builder.clone().parallel().build_from(&keys).unwrap());
            assert!(one == several, "{threads} threads");
        }
    }
}
