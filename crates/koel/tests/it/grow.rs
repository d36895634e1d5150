//! Growing filters: no key is ever lost, the false-positive rate and the load factor hold at every
//! size, and removed keys are gone.

mod batches;
mod coarse;
mod files;
mod leftovers;
mod merge;
mod model;

use koel::{BuildError, Builder, Codec, CuckooFilter, Merge, Prefer};
use testkit::keys::{self, all_at, at, splitmix64};

use crate::support::{body, forged};

/// Every kind of builder for a filter that grows from a thousand keys to `last`, at this rate.
pub(crate) fn builders(last: u64, rate: f64) -> impl Iterator<Item = Builder<CuckooFilter>> {
    let ways = [
        CuckooFilter::builder(1000, rate).growable(),
        CuckooFilter::builder(last, rate).grow_from(1000),
    ];
    let prefers = [Prefer::Small, Prefer::Fast];
    ways.into_iter().flat_map(move |way| prefers.map(|prefer| way.clone().prefer(prefer)))
}

/// An empty filter like this one, of 16 segments of 20 buckets, which no builder makes.
fn in_segments(filter: &CuckooFilter) -> CuckooFilter {
    CuckooFilter::from_bytes(&testkit::image::reshape(&filter.to_bytes(), 4, 20)).unwrap()
}

fn insert(filter: &mut CuckooFilter, hashes: impl Iterator<Item = u64>) {
    filter.insert_many(&all_at(&hashes.collect::<Vec<_>>())).unwrap();
}

/// The load at which a growing filter splits its next buckets, a 64th of them or fewer.
fn design_load(filter: &CuckooFilter) -> f64 {
    if filter.layout().codec() == Codec::SemiSorted { 0.87 } else { 0.80 }
}

/// The share of absent keys that are reported present, and five standard deviations of it.
fn measured_rate(filter: &CuckooFilter) -> (f64, f64) {
    const QUERIES: u64 = 500_000;
    let absent: Vec<u64> = keys::hashes(99, QUERIES).collect();
    let mut found = vec![false; absent.len()];
    filter.contains_many(&all_at(&absent), &mut found);
    let wrong = found.iter().filter(|&&found| found).count() as f64 / QUERIES as f64;
    (wrong, 5.0 * (wrong.max(1e-6) / QUERIES as f64).sqrt())
}

/// The measured rate is near the one asked for, and the one that the filter says.
#[track_caller]
fn assert_rate(filter: &CuckooFilter, rate: f64) {
    let ((wrong, error), says) = (measured_rate(filter), filter.false_positive_rate());
    assert!(wrong - error <= 1.35 * rate, "{filter:?}: {wrong}, asked for {rate}");
    assert!((wrong - says).abs() <= error + 0.03 * says, "{filter:?}: {wrong}, not {says}");
}

#[test]
fn at_every_size_no_key_is_lost_and_rate_and_load_hold() {
    for rate in [0.05, 0.004, 0.001, 0.000_1] {
        for builder in builders(200_000, rate) {
            let mut filter = builder.build().unwrap();
            let (mut next, mut loads) = (0, vec![]);
            // A quarter more each time, up to 209,000.
            let steps = (0..24).scan(1000_u64, |keys, _| {
                *keys += *keys / 4;
                Some(*keys)
            });
            for last in steps {
                insert(&mut filter, keys::hashes(7, last).skip(usize::try_from(next).unwrap()));
                next = last;
                assert!(keys::hashes(7, last).all(|hash| filter.contains(&at(hash))), "{filter:?}");
                assert_rate(&filter, rate);
                loads.push(filter.load_factor());
            }
            assert_eq!(filter.len(), next);
            filter.verify().unwrap();
            let grown = &loads[6..];
            let mean = grown.iter().sum::<f64>() / grown.len() as f64;
            let load = design_load(&filter);
            assert!(
                mean >= load - 0.012 && grown.iter().all(|&at| load - 0.02 < at && at <= load),
                "{filter:?}: {mean}, {loads:?}"
            );
        }
    }
}

/// A fixed table for few keys has room for many more and may be nearly empty at its capacity. A
/// growing one may not.
#[test]
fn filters_built_for_few_keys_keep_the_rate_too() {
    for capacity in [1, 10, 100, 500, 3000] {
        for prefer in [Prefer::Small, Prefer::Fast] {
            let builder = CuckooFilter::builder(capacity, 0.001).prefer(prefer).growable();
            let mut filter = builder.build().unwrap();
            for (from, to) in [(0, 1000), (1000, 4000), (4000, 60_000)] {
                insert(&mut filter, keys::hashes(8, to).skip(from));
                assert_rate(&filter, 0.001);
            }
            assert!(filter.has_grown());
        }
    }
}

#[test]
fn a_failed_reserve_changes_nothing() {
    for builder in [
        CuckooFilter::builder(1000, 0.001).growable(),
        CuckooFilter::builder(1_000_000, 0.001).grow_from(1000),
    ] {
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(1, 900));
        let before = filter.clone();
        for additional in [u64::MAX, u64::MAX / 2, 1 << 40, 20_000_000_000] {
            assert!(filter.reserve(additional).is_err(), "{additional}");
            assert!(filter == before);
        }
        filter.reserve(10_000).unwrap();
        let room = filter.buckets();
        insert(&mut filter, keys::hashes(1, 10_900).skip(900));
        assert_eq!(filter.buckets(), room);
    }
}

/// Starts with 81 buckets, a quarter of those for a thousand keys, and the narrowest fingerprints
/// that can grow.
#[test]
fn fourteen_doublings_keep_the_rate() {
    const BUCKETS: u32 = 81;
    for (rate, prefer) in [(0.004, Prefer::Small), (0.002, Prefer::Fast)] {
        let whole = CuckooFilter::builder(1000, rate).growable().prefer(prefer).build().unwrap();
        let small = testkit::image::reshape(&whole.to_bytes(), 0, BUCKETS);
        let mut filter = CuckooFilter::from_bytes(&small).unwrap();
        let mut hashes = keys::hashes(11, u64::MAX);
        for doublings in 0..=14 {
            while filter.buckets() < u64::from(BUCKETS) << doublings {
                let some = 1 + usize::try_from(filter.buckets() / 8).unwrap();
                insert(&mut filter, hashes.by_ref().take(some));
            }
            assert_rate(&filter, rate);
            assert!(doublings < 3 || filter.load_factor() > design_load(&filter) - 0.02);
        }
        assert!(keys::hashes(11, filter.len()).all(|hash| filter.contains(&at(hash))));
    }
}

#[test]
fn removed_keys_no_longer_count_as_distinct() {
    for builder in builders(60_000, 0.001) {
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(7, 40_000));
        insert(&mut filter, keys::hashes(7, 20_000));
        let mut once = keys::hashes(7, 40_000).skip(20_000);
        assert!(once.all(|hash| filter.remove(&at(hash))));
        let (left, entries) = (filter.distinct_estimate(), filter.slots_in_use());
        assert!(entries > 25_000 && (left / 20_000.0 - 1.0).abs() < 0.03, "{left}: {filter:?}");
    }
}

#[test]
fn until_it_grows_a_growable_filter_equals_the_fixed_one() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        let builder = CuckooFilter::builder(5000, 0.001).prefer(prefer);
        let (mut fixed, mut growable) =
            (builder.build().unwrap(), builder.growable().build().unwrap());
        insert(&mut fixed, keys::hashes(1, 5000));
        insert(&mut growable, keys::hashes(1, 5000));
        assert!(growable.is_growable() && !growable.has_grown() && !fixed.is_growable());
        assert!(body(&fixed.to_bytes()) == body(&growable.to_bytes()));
    }
}

#[test]
fn copies_of_the_keys_that_it_has_room_for_do_not_make_a_filter_grow() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        let builder = CuckooFilter::builder(20_000, 0.001).growable().prefer(prefer);
        let mut filter = builder.build().unwrap();
        for key in (0..20_000).flat_map(|key| [key, key, key / 2]) {
            filter.insert(&at(splitmix64(key))).unwrap();
        }
        assert!(!filter.has_grown());
        // A few keys share an entry with another, so more keys fit.
        (20_000..22_000).for_each(|key| filter.insert(&at(splitmix64(key))).unwrap());
        assert!(filter.has_grown());
        assert!((0..10_000).all(|key| filter.count(&at(splitmix64(key))) >= 4));
    }
}

#[test]
fn a_fixed_filter_can_be_let_grow() {
    let mut filter = CuckooFilter::builder(5000, 0.001).build().unwrap();
    insert(&mut filter, keys::hashes(1, 5000));
    filter.make_growable().unwrap();
    insert(&mut filter, keys::hashes(1, 50_000).skip(5000));
    assert!(keys::hashes(1, 50_000).all(|hash| filter.contains(&at(hash))));
    assert!(measured_rate(&filter).0 < 0.001_35);
}

/// Growth needs spare bits in every slot. There are none below a rate of about one in ten million.
#[test]
fn making_a_filter_growable_lifts_the_counter_limit_and_fails_if_it_is_too_precise() {
    let mut filter = CuckooFilter::builder(100, 0.001).counter_limit(1).build().unwrap();
    filter.make_growable().unwrap();
    assert_eq!((filter.is_growable(), filter.counter_limit()), (true, u64::MAX));

    let mut filter = CuckooFilter::builder(100, 1e-9).counter_limit(1).build().unwrap();
    let before = filter.to_bytes();
    let refusal = filter.make_growable().unwrap_err();
    assert!(matches!(refusal, BuildError::TooPrecise { rate: 1e-9, .. }), "{refusal:?}");
    assert!(filter.to_bytes() == before);
}

#[test]
fn reserve_makes_room_at_once_and_shrink_returns_it() {
    for builder in builders(100_000, 0.001) {
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(1, 1000));
        filter.reserve(99_000).unwrap();
        let (buckets, reserved) = (filter.buckets(), filter.size_in_bytes());
        insert(&mut filter, keys::hashes(1, 90_000).skip(1000));
        assert_eq!(filter.buckets(), buckets);
        for hash in keys::hashes(1, 90_000).skip(10_000) {
            assert!(filter.remove(&at(hash)));
        }
        filter.shrink_to_fit();
        assert!(filter.size_in_bytes() < reserved / 8, "{filter:?}");
        assert!(keys::hashes(1, 10_000).all(|hash| filter.contains(&at(hash))));
        filter.verify().unwrap();
        assert!(measured_rate(&filter).0 < 0.001_35);
    }
}

/// Growth once turned a thousand keys into ten thousand entries, whose halves did not fit into a
/// table for a thousand. No memory was returned, and a smaller filter refused to merge them.
#[test]
fn entries_split_by_growth_fit_into_a_smaller_table() {
    for rate in [0.05, 0.001] {
        let builder = CuckooFilter::builder(1000, rate).growable();
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(1, 3000));
        filter.reserve(1_000_000).unwrap();
        let buckets = filter.buckets();
        for counts in [Merge::Sum, Merge::Max] {
            let mut union = builder.build().unwrap();
            insert(&mut union, keys::hashes(2, 3000));
            union.merge(&filter, counts).unwrap();
            union.verify().unwrap();
            let all = || keys::hashes(1, 3000).chain(keys::hashes(2, 3000));
            assert!(all().all(|hash| union.contains(&at(hash))), "{union:?}");
            assert!(counts == Merge::Max || all().all(|hash| union.remove(&at(hash))));
        }
        filter.shrink_to_fit();
        filter.verify().unwrap();
        assert!(filter.buckets() * 10 < buckets * 6, "{} of {buckets}", filter.buckets());
        assert!(keys::hashes(1, 3000).all(|hash| filter.count(&at(hash)) > 0));
        assert!(keys::hashes(1, 3000).all(|hash| filter.remove(&at(hash))));
        assert!(filter.is_empty());
    }
}

/// Growth beyond the bits of an entry puts its halves into many buckets. A table with fewer once
/// joined them: keys that were added once had a count of 17, and were reported when removed.
#[test]
fn a_smaller_table_still_counts_a_key_once_whose_entry_growth_has_split() {
    for rate in [0.05, 0.001, 0.000_1] {
        let builder = CuckooFilter::builder(100, rate).growable();
        let (mut grown, mut union) = (builder.build().unwrap(), builder.build().unwrap());
        insert(&mut grown, keys::hashes(1, 50));
        grown.reserve(1_000_000).unwrap();
        union.merge(&grown, Merge::Sum).unwrap();
        let mut shrunk = grown.clone();
        shrunk.shrink_to_fit();
        for mut filter in [shrunk, union] {
            let is_small = filter.buckets() < grown.buckets();
            assert!(is_small && filter.verify() == Ok(()), "{filter:?}");
            let counts: u64 = keys::hashes(1, 50).map(|hash| filter.count(&at(hash))).sum();
            assert_eq!(counts, 50, "{filter:?}");
            assert!(keys::hashes(1, 25).all(|hash| filter.remove(&at(hash))));
            let reported = keys::hashes(1, 50).filter(|&hash| filter.contains(&at(hash)));
            assert_eq!(reported.count(), 25, "{filter:?}");
        }
    }
}

/// No table has room for so many keys whose addresses differ in their last bits alone, but their
/// entries can share slots.
#[test]
fn filters_with_keys_that_are_alike_are_merged() {
    let builder = CuckooFilter::builder(1000, 1e-5).growable();
    let alike = |i: u64| at(splitmix64(1 << 50) & !0xff | i << 2);
    let filters = [0..8, 8..16].map(|some: std::ops::Range<u64>| {
        let mut filter = builder.build().unwrap();
        insert(&mut filter, keys::hashes(1, 3000));
        some.for_each(|i| filter.insert(&alike(i)).unwrap());
        filter
    });
    for counts in [Merge::Sum, Merge::Max] {
        let [mut union, other] = filters.clone();
        union.merge(&other, counts).unwrap();
        assert!((0..16).all(|i| union.contains(&alike(i))), "{union:?}");
        assert!(counts == Merge::Max || (0..16).all(|i| union.remove(&alike(i))));
        assert_eq!(union.verify(), Ok(()));
    }
}

#[test]
fn a_fixed_filter_refuses_room_and_keeps_its_keys() {
    let mut filter = CuckooFilter::builder(1000, 0.001).build().unwrap();
    let before = filter.to_bytes();
    filter.reserve(1000).unwrap();
    assert!(filter.reserve(1001).is_err());
    assert!(filter.to_bytes() == before);
}

/// Without counters the keys cannot share slots: growth does not help, and one key is refused.
#[test]
fn a_refused_key_changes_no_byte() {
    let builder = CuckooFilter::builder(1000, 1e-5).counter_limit(0).growable();
    let mut filter = builder.build().unwrap();
    insert(&mut filter, keys::hashes(1, 1500));
    let alike = |i: u64| splitmix64(1 << 50) & !0xff | i << 2;
    let mut before = filter.clone();
    while filter.insert(&at(alike(filter.len() - 1500))).is_ok() {
        before = filter.clone();
    }
    assert!(filter.len() > 1501 && filter == before && filter.to_bytes() == before.to_bytes());
}

/// Fuzzing found that a counter kept by both halves of a void entry exceeded the limit by one, so
/// that the file was refused.
#[test]
fn a_counter_that_growth_splits_may_exceed_the_limit() {
    let mut filter = CuckooFilter::builder(10, 0.3).counter_limit(1).growable().build().unwrap();
    let first = splitmix64(8);
    insert(&mut filter, [first].into_iter().cycle().take(5));
    let mut more = keys::hashes(9, 400_000);
    while filter.distinct_counters() < 2 {
        filter.insert_unique(&at(more.next().expect("a counter in two entries"))).unwrap();
    }
    assert_eq!(filter.verify(), Ok(()));
    assert_eq!(CuckooFilter::from_bytes(&filter.to_bytes()).as_ref(), Ok(&filter));
    assert!(filter.count(&at(first)) >= 5);
}

/// A grown filter stores the number of distinct entries and does not recount it. So two filters
/// with equal buckets may report different false-positive rates.
#[test]
fn filters_that_have_grown_to_different_numbers_of_distinct_entries_differ() {
    let mut filter = CuckooFilter::builder(10_000, 0.001).grow_from(1000).build().unwrap();
    insert(&mut filter, keys::hashes(1, 500));
    let bytes = forged(&filter.to_bytes(), &[("distinct entries", 300)]);
    let other = CuckooFilter::from_bytes(&bytes).unwrap();
    assert!(other.false_positive_rate() < filter.false_positive_rate() && other != filter);
}
