//! Copies of a key: any number is counted and removed again, and copies take no room from distinct
//! keys.

use koel::CuckooFilter;
use testkit::keys::{self, at};

#[test]
fn one_key_goes_in_and_out_a_million_times_on_two_slots() {
    let mut filter = CuckooFilter::with_capacity(1000);
    let empty = filter.to_bytes();
    for copies in 1..=1 << 20 {
        filter.insert("again").unwrap();
        assert!(filter.slots_in_use() <= 2);
        assert_eq!(filter.count("again"), copies);
    }
    assert_eq!(filter.len(), 1 << 20);
    for copies in (0..1 << 20).rev() {
        assert!(filter.remove("again"));
        assert_eq!(filter.count("again"), copies);
    }
    assert!(!filter.remove("again"));
    assert!(filter.to_bytes() == empty);
}

/// The load factor that *distinct* keys reach when every key is inserted `times` times.
fn distinct_load(times: u32) -> f64 {
    let mut filter = CuckooFilter::builder(250_000, 0.001).counter_limit(u64::MAX).build().unwrap();
    let mut distinct = 0_u64;
    for hash in keys::hashes(2, u64::MAX) {
        let all_in = (0..times).all(|_| filter.insert(&at(hash)).is_ok());
        if !all_in {
            break;
        }
        distinct += 1;
    }
    assert!(keys::hashes(2, distinct).all(|hash| filter.count(&at(hash)) >= u64::from(times)));
    filter.verify().unwrap();
    distinct as f64 / filter.slots() as f64
}

#[test]
fn keys_inserted_eight_times_reach_the_load_of_keys_inserted_once() {
    let once = distinct_load(1);
    assert!(once > 0.97);
    for times in [2, 3, 8] {
        let load = distinct_load(times);
        assert!((load - once).abs() <= 0.005, "once {once}, {times} times {load}");
    }
}

#[test]
fn counts_of_a_heavy_tailed_stream_are_never_too_low_and_all_copies_can_be_removed() {
    let mut filter = CuckooFilter::builder(50_000, 0.001).build().unwrap();
    let empty = filter.to_bytes();
    // Key number k is inserted about 50,000 / k times.
    let stream =
        || keys::hashes(6, 50_000).enumerate().map(|(k, hash)| (hash, 50_000 / (k as u64 + 1)));
    for (hash, times) in stream() {
        (0..times.max(1)).for_each(|_| filter.insert(&at(hash)).unwrap());
    }
    let wrong = stream().filter(|&(hash, times)| {
        let count = filter.count(&at(hash));
        assert!(count >= times.max(1));
        count > times.max(1)
    });
    // Wrong counts come in pairs, which doubles their variance.
    let (wrong, mean) = (wrong.count() as f64, 50_000.0 * filter.false_positive_rate());
    assert!((wrong - mean).abs() < 5.0 * (2.0 * mean).sqrt(), "{wrong} wrong, expected {mean}");
    for (hash, times) in stream() {
        (0..times.max(1)).for_each(|_| assert!(filter.remove(&at(hash))));
    }
    assert!(filter.to_bytes() == empty);
}

#[test]
fn copies_change_neither_the_false_positive_rate_nor_the_distinct_estimate() {
    for times in [1, 2, 5] {
        let mut filter = CuckooFilter::builder(100_000, 0.01).build().unwrap();
        for hash in keys::hashes(11, 90_000) {
            (0..times).for_each(|_| filter.insert(&at(hash)).unwrap());
        }
        let (estimate, possible) =
            (filter.distinct_estimate(), filter.buckets() as f64 * 1008.0 / 2.0);
        let sigma = 90_000.0 / (2.0 * possible).sqrt();
        assert!((estimate - 90_000.0).abs() < 5.0 * sigma, "{times}: {estimate} +- {sigma}");

        let wrong = keys::hashes(12, 1_000_000).filter(|&hash| filter.contains(&at(hash))).count();
        let (wrong, mean) = (wrong as f64, 1e6 * filter.false_positive_rate());
        assert!((wrong - mean).abs() < 5.0 * mean.sqrt(), "{times}: {wrong}, expected {mean}");
    }
}
