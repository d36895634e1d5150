//! Most other tests rely on `==`. This one tests `==` itself: two values are equal if and only if
//! their bytes are.

use koel::{
    CountingFilter, CountingView, CuckooFilter, ExpiringFilter, ExpiringView, FilterView, Maplet,
    MapletView,
};
use testkit::keys::at;
use testkit::{image, keys};

/// Compares every pair by `==` and by bytes. No two have equal bytes, and each equals its clone.
#[track_caller]
fn assert_equal_by_bytes<T: PartialEq + Clone>(all: &[T], bytes: impl Fn(&T) -> Vec<u8>) {
    for (i, one) in all.iter().enumerate() {
        assert!(*one == one.clone(), "{i}");
        for (j, other) in all.iter().enumerate() {
            assert_eq!(bytes(one) == bytes(other), i == j, "{i} and {j}");
            assert_eq!(one == other, i == j, "{i} and {j}");
        }
    }
}

#[test]
fn filters_are_equal_if_their_bytes_are() {
    let builder = CuckooFilter::builder(100, 0.001);
    // Of one shape, but built with different parameters.
    let builders = [
        builder.clone(),
        builder.clone().seed(1),
        builder.clone().counter_limit(9),
        builder.growable(),
        CuckooFilter::builder(10_000, 0.001).grow_from(1000),
        CuckooFilter::builder(99, 0.001),
        CuckooFilter::builder(100, 0.000_999),
    ];
    let contents: [&[&str]; 7] = [
        &[],
        &["ada"],
        &["bo"],
        &["ada"; 2],
        &["ada"; 3],
        // Equal entries, and equally many keys.
        &["ada", "ada", "ada", "bo", "bo", "bo", "bo"],
        &["ada", "ada", "ada", "ada", "bo", "bo", "bo"],
    ];
    let filled = contents.into_iter().flat_map(|keys| {
        builders.iter().map(move |builder| {
            let mut filter = builder.build().unwrap();
            filter.try_extend(keys).unwrap();
            filter
        })
    });
    assert_equal_by_bytes(&filled.collect::<Vec<_>>(), CuckooFilter::to_bytes);
}

/// A grown filter stores the number of distinct entries and does not recount it. So two filters
/// with equal buckets may report different false-positive rates.
#[test]
fn filters_that_have_grown_to_different_numbers_of_distinct_entries_differ() {
    let mut filter = CuckooFilter::builder(10_000, 0.001).grow_from(1000).build().unwrap();
    keys::hashes(1, 500).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let mut bytes = filter.to_bytes();
    image::set(&mut bytes, 112, 300);
    image::reseal(&mut bytes);
    let other = CuckooFilter::from_bytes(&bytes).unwrap();
    assert!(other.false_positive_rate() < filter.false_positive_rate());
    assert_equal_by_bytes(&[filter, other], CuckooFilter::to_bytes);
}

#[test]
fn maplets_are_equal_if_their_bytes_are() {
    let builder = Maplet::builder(100, 0.001, 8);
    let builders = [
        builder.clone(),
        builder.clone().seed(1),
        builder.grow_from(100),
        Maplet::builder(99, 0.001, 8),
    ];
    let contents: [&[(&str, u64)]; 5] =
        [&[], &[("ada", 1)], &[("ada", 2)], &[("bo", 1)], &[("ada", 1), ("ada", 1)]];
    let filled = contents.into_iter().flat_map(|pairs| {
        builders.iter().map(move |builder| {
            let mut maplet = builder.build().unwrap();
            pairs.iter().for_each(|&(key, value)| maplet.insert(key, value).unwrap());
            maplet
        })
    });
    assert_equal_by_bytes(&filled.collect::<Vec<_>>(), Maplet::to_bytes);
}

#[test]
fn counting_filters_are_equal_if_their_bytes_are() {
    let builder = CountingFilter::builder(100, 0.001).count_bits(2);
    let builders = [
        builder.clone(),
        builder.clone().seed(1),
        builder.grow_from(100),
        CountingFilter::builder(99, 0.001).count_bits(2),
    ];
    // Counts in slots and in counters: two filters have equal slots and equally many keys.
    let contents: [&[(&str, u64)]; 7] = [
        &[],
        &[("ada", 1)],
        &[("bo", 1)],
        &[("ada", 2)],
        &[("ada", 5)],
        &[("ada", 5), ("bo", 6)],
        &[("ada", 6), ("bo", 5)],
    ];
    let filled = contents.into_iter().flat_map(|counts| {
        builders.iter().map(move |builder| {
            let mut filter = builder.build().unwrap();
            counts.iter().for_each(|&(key, count)| assert_eq!(filter.add(key, count), Ok(count)));
            filter
        })
    });
    assert_equal_by_bytes(&filled.collect::<Vec<_>>(), CountingFilter::to_bytes);
}

/// A clone of a view reads the same bytes, and is as good as the view.
#[test]
fn a_view_is_cloned_without_its_bytes() {
    let keys: Vec<u64> = (0..20_000).collect();
    let mut fixed = CuckooFilter::builder(20_000, 0.001).build().unwrap();
    let mut grown = CuckooFilter::builder(1000, 0.001).growable().build().unwrap();
    for filter in [&mut fixed, &mut grown] {
        filter.insert_many(&keys).unwrap();
        (0..9).for_each(|_| filter.insert(&7_u64).unwrap());
        filter.refute_many(&(20_000..60_000_u64).collect::<Vec<_>>()).unwrap();
        let bytes = filter.to_bytes();
        let clone = FilterView::open(&bytes).unwrap().clone();
        assert_eq!((clone.to_bytes(), clone.count(&7_u64)), (bytes.clone(), 10));
        assert_eq!(clone.to_owned().unwrap(), *filter);
    }
    let mut counting = CountingFilter::builder(100, 0.001).build().unwrap();
    counting.add("ada", 1000).unwrap();
    let bytes = counting.to_bytes();
    let clone = CountingView::open(&bytes).unwrap().clone();
    assert_eq!((clone.count("ada"), clone.to_owned().unwrap()), (1000, counting));
    let mut maplet = Maplet::builder(100, 0.001, 8).build().unwrap();
    maplet.insert("ada", 7).unwrap();
    let bytes = maplet.to_bytes();
    let clone = MapletView::open(&bytes).unwrap().clone();
    assert_eq!((clone.get("ada").collect(), clone.to_owned().unwrap()), (vec![7_u64], maplet));
    let mut expiring = ExpiringFilter::builder(100, 0.001).window(60).build().unwrap();
    expiring.advance(1000);
    expiring.insert("ada").unwrap();
    let bytes = expiring.to_bytes();
    let clone = ExpiringView::open(&bytes).unwrap().clone();
    assert_eq!((clone.age("ada"), clone.to_owned().unwrap()), (Some(0), expiring));
}
