//! Merges and comparisons of filters that have grown.

use std::ops::Range;

use koel::{Builder, CuckooFilter, FilterView, Merge, MergeError, Prefer};
use testkit::keys::{self, at, hashes, splitmix64};

use super::{builders, in_segments, insert, measured_rate};
use crate::support::{forged, read, with_counts};

/// A filter of these ranges of the hashes of seed 5, in order.
fn filled<const PARTS: usize>(
    builder: &Builder<CuckooFilter>,
    parts: [Range<u64>; PARTS],
) -> CuckooFilter {
    let mut filter = builder.build().unwrap();
    for part in parts {
        let before = usize::try_from(part.start).unwrap();
        insert(&mut filter, keys::hashes(5, part.end).skip(before));
    }
    filter
}

#[test]
fn a_grown_filter_merges_only_into_a_growable_filter() {
    let fixed = CuckooFilter::builder(1000, 0.001).build().unwrap();
    let mut grown = fixed.clone();
    grown.make_growable().unwrap();
    insert(&mut grown, keys::hashes(1, 3000));
    for counts in [Merge::Sum, Merge::Max] {
        let mut union = fixed.clone();
        let refusal = union.merge(&grown, counts).unwrap_err();
        assert_eq!(refusal, MergeError::Incompatible { field: "growth" });
        assert!(refusal.to_string().contains("make this one growable"), "{refusal}");
        assert!(union.to_bytes() == fixed.to_bytes());
        union.make_growable().unwrap();
        union.merge(&grown, counts).unwrap();
        assert_eq!(union.len(), 3000);
        assert!(keys::hashes(1, 3000).all(|hash| union.contains(&at(hash))));
    }
}

/// What the pages say of merges: of filters with room for the union, the rate is what they were
/// built for; the rates of filters that have grown add up.
#[test]
fn rates_of_grown_filters_add_up() {
    let union_of = |builder: Builder<CuckooFilter>| {
        let parts = (0..16).map(|part| {
            let keys = part * 3000..(part + 1) * 3000;
            filled(&builder, [keys])
        });
        let mut parts = parts.collect::<Vec<_>>().into_iter();
        let mut union = parts.next().unwrap();
        let mut sum = union.false_positive_rate();
        for part in parts {
            sum += part.false_positive_rate();
            union.merge(&part, Merge::Sum).unwrap();
        }
        (union.false_positive_rate(), sum)
    };
    let (with_room, _) = union_of(CuckooFilter::builder(48_000, 0.001));
    assert!(with_room <= 0.001, "{with_room}");
    for builder in [
        CuckooFilter::builder(1_000_000, 0.001).grow_from(1000),
        CuckooFilter::builder(2000, 0.001).growable(),
    ] {
        let (grown, sum) = union_of(builder);
        assert!((0.25 * sum..=sum * 1.001).contains(&grown), "{grown} of {sum}");
        assert!(grown > 0.002, "{grown}");
    }
}

/// A filter of 16 segments that has not grown yet.
fn of_small_segments() -> CuckooFilter {
    in_segments(&CuckooFilter::builder(1000, 1e-4).growable().build().unwrap())
}

#[test]
fn filters_of_several_segments_are_merged_and_compared_whether_or_not_they_have_grown() {
    let (mut built, mut grown) = (of_small_segments(), of_small_segments());
    insert(&mut built, keys::hashes(5, 800));
    insert(&mut grown, keys::hashes(5, 9000).skip(400));
    // One key has a counter.
    let often = splitmix64(1);
    insert(&mut grown, [often; 5].into_iter());
    assert!(!built.has_grown() && grown.has_grown());
    for (one, other) in [(&built, &grown), (&grown, &built)] {
        let common = one.compare(other).unwrap().common();
        let off = (common.value - 400.0).abs();
        assert!(off <= 5.0 * common.standard_error + 1.0, "{common:?}");
        let mut union = one.clone();
        union.merge(other, Merge::Max).unwrap();
        assert!(keys::hashes(5, 9000).all(|hash| union.contains(&at(hash))));
        assert_eq!(union.count(&at(often)), 5);
        union.verify().unwrap();
        assert_eq!(testkit::audit::audit(&union.to_bytes()), Ok(()));
    }
}

/// The identities of counters change when a table first grows.
#[test]
fn counters_of_several_segments_are_kept_when_the_filter_first_grows() {
    let mut filter = of_small_segments();
    let often: Vec<u64> = keys::hashes(9, 300).flat_map(|hash| [hash; 4]).collect();
    insert(&mut filter, often.iter().copied());
    assert!(filter.distinct_counters() == 300 && !filter.has_grown());
    filter.reserve(2000).unwrap();
    assert!(filter.has_grown() && often.iter().all(|&hash| filter.count(&at(hash)) == 4));
    assert_eq!(testkit::audit::audit(&filter.to_bytes()), Ok(()));
    assert!(often.iter().all(|&hash| filter.remove(&at(hash))) && filter.is_empty());
    assert_eq!(filter.distinct_counters(), 0);
}

#[test]
fn filters_that_grew_separately_merge_in_any_order_and_answer_like_one_build() {
    for rate in [0.05, 0.001] {
        for builder in builders(90_000, rate) {
            // The sizes differ widely: one filter has not grown at all.
            let shards = [0..300, 300..20_000, 15_000..90_000].map(|part| filled(&builder, [part]));
            for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
                let mut union = shards[order[0]].clone();
                union.merge(&shards[order[1]], Merge::Sum).unwrap();
                union.merge(&shards[order[2]], Merge::Sum).unwrap();
                assert_eq!(union.len(), 95_000);
                assert!(keys::hashes(5, 90_000).all(|hash| union.contains(&at(hash))));
                let (wrong, error) = measured_rate(&union);
                // A union stores no more bits than its inputs, so their false-positive rates add
                // up.
                let sum: f64 = shards.iter().map(CuckooFilter::false_positive_rate).sum();
                assert!(wrong - error <= 1.05 * sum, "{union:?}: {wrong} of {sum}");
                assert!(CuckooFilter::from_bytes(&union.to_bytes()).as_ref() == Ok(&union));
                // The 5000 common keys may have entries of two lengths, and some entries are in two
                // halves.
                let off = union.distinct_estimate() / 90_000.0 - 1.0;
                assert!(off.abs() < 0.07 + 2.0 * rate, "{union:?}: {}", union.distinct_estimate());
                for (i, hash) in keys::hashes(5, 90_000).enumerate() {
                    let copies = if (15_000..20_000).contains(&i) { 2 } else { 1 };
                    assert!(union.count(&at(hash)) >= copies, "{union:?}");
                    assert!((0..copies).all(|_| union.remove(&at(hash))), "{union:?}");
                }
                assert!(union.is_empty());
            }
            let mut most = shards[1].clone();
            most.merge(&shards[2], Merge::Max).unwrap();
            assert!(keys::hashes(5, 90_000).skip(300).all(|hash| most.contains(&at(hash))));
            // Common keys count once, except for false positives and entries in two halves, which
            // count twice.
            let off = 1.0 - most.len() as f64 / 89_700.0;
            assert!(off.abs() < 0.01 + 1.5 * rate, "{most:?}");
        }
    }
}

/// A key inserted again after growth has a second entry with more bits than the first. A merge once
/// took the first entry for both.
#[test]
fn the_larger_count_is_at_least_each_count() {
    for rate in [0.05, 0.001] {
        for builder in builders(40_000, rate) {
            let empty = builder.build().unwrap();
            let ours = filled(&builder, [20_000..25_000, 0..30_000, 20_000..25_000]);
            let theirs = filled(&builder, [0..2000, 2000..40_000, 0..2000]);
            for (ours, theirs) in [(&empty, &theirs), (&ours, &empty), (&ours, &theirs)] {
                let mut most = ours.clone();
                most.merge(theirs, Merge::Max).unwrap();
                let short = keys::hashes(5, 40_000).filter(|&hash| {
                    most.count(&at(hash)) < ours.count(&at(hash)).max(theirs.count(&at(hash)))
                });
                assert_eq!(short.count(), 0, "{most:?} of {ours:?} and {theirs:?}");
            }
            let mut most = empty.clone();
            most.merge(&theirs, Merge::Max).unwrap();
            assert_eq!(most.len(), theirs.len());
            for hash in keys::hashes(5, 2000).chain(keys::hashes(5, 40_000)) {
                assert!(most.remove(&at(hash)), "{most:?}");
            }
        }
    }
}

/// Fuzzing found that splitting a void entry gave its huge count to both halves, so that the sum of
/// all counts exceeded 64 bits by one.
#[test]
fn the_counts_of_a_grown_filter_may_add_up_to_more_than_64_bits() {
    let mut filter = CuckooFilter::builder(2000, 0.05).grow_from(1000).build().unwrap();
    insert(
        &mut filter,
        keys::hashes(1, 400).chain((0..80).map(|i| splitmix64((1 << 50) | (i % 8)))),
    );
    assert!(filter.distinct_counters() >= 8);
    let bytes = with_counts(&filter.to_bytes(), &[u64::MAX / 2; 8]);
    let mut filter = CuckooFilter::from_bytes(&bytes).unwrap();
    insert(&mut filter, keys::hashes(2, 20_000));
    filter.verify().unwrap();
    assert_eq!(testkit::audit::audit(&filter.to_bytes()), Ok(()));
}

/// Fuzzing found that the lengths were added, and overflowed, before the common part was
/// subtracted.
#[test]
fn the_larger_of_counts_beyond_63_bits_is_not_their_sum() {
    let mut filter = CuckooFilter::builder(2000, 0.05).grow_from(1000).build().unwrap();
    insert(&mut filter, (0..6).map(|_| splitmix64(3)));
    let bytes = with_counts(&filter.to_bytes(), &[1 << 63]);
    let bytes = forged(&bytes, &[("keys", (1 << 63) + 2)]);
    let mut filter = CuckooFilter::from_bytes(&bytes).unwrap();
    let twin = filter.clone();
    filter.merge(&twin, Merge::Max).unwrap();
    assert_eq!(filter, twin);
    assert!(filter.merge(&twin, Merge::Sum).is_err() && filter == twin);
}

/// A filter widens its buckets while it is used, and a view has them as they were saved.
#[test]
fn a_view_does_in_everything_what_its_filter_does_while_buckets_are_widened() {
    let mut narrow = 0;
    for (seed, prefer) in (0..16).zip([Prefer::Small, Prefer::Fast].into_iter().cycle()) {
        let growing = |seed: u64, further: u64| {
            let builder = CuckooFilter::builder(9000, 0.01).prefer(prefer).growable();
            let (mut filter, mut keys) = (builder.build().unwrap(), hashes(seed, u64::MAX));
            while !filter.has_grown() {
                keys.by_ref().take(3).for_each(|key| filter.insert(&key).unwrap());
            }
            (0..further).zip(keys).for_each(|(_, key)| filter.insert(&key).unwrap());
            hashes(seed, 90).for_each(|key| assert!(filter.remove(&key)));
            (0..9).for_each(|_| filter.insert(&seed).unwrap());
            filter
        };
        let further = if seed % 4 == 3 { 9000 } else { 2 * (seed % 4) };
        let (one, other) = (growing(seed, 0), growing(seed / 2, further));
        let [our_bytes, their_bytes] = [&one, &other].map(|filter| filter.to_bytes());
        narrow += read(&their_bytes, "narrow buckets");
        let ours = FilterView::open(&our_bytes).unwrap();
        let theirs = FilterView::open(&their_bytes).unwrap();
        assert!(theirs.to_owned().unwrap() == other, "{seed}");
        assert_eq!(one.compare(&other).unwrap(), ours.compare(&theirs).unwrap(), "{seed}");
        let patch = one.patch_to(&other).unwrap();
        assert!(ours.patch_to(&theirs).unwrap() == patch, "{seed}");
        let patched = one.patched(&patch).unwrap().to_bytes();
        assert!(ours.patched(&patch).unwrap().to_bytes() == patched, "{seed}");
        for counts in [Merge::Sum, Merge::Max] {
            let mut union = one.clone();
            union.merge(&other, counts).unwrap();
            let mut of_views = ours.to_owned().unwrap();
            of_views.merge(&theirs, counts).unwrap();
            assert!(of_views.to_bytes() == union.to_bytes(), "{counts:?}, {seed}");
        }
        let [fitted, of_view] = [one, ours.to_owned().unwrap()].map(|mut filter| {
            filter.shrink_to_fit();
            filter.to_bytes()
        });
        assert!(fitted == of_view, "{seed}");
    }
    assert!(narrow > 0, "some are saved before all buckets are wide");
}
