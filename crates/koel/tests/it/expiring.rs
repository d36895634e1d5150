//! The expiring filter: building, capacity, rates, time. A submodule tests its growth, `alike.rs`
//! what it shares with other types; `testkit::expiring` has the model of any operations.

mod grow;

use std::collections::{BTreeSet, HashMap};

use koel::{BuildError, ExpiringFilter, WhenFull};
use proptest::prelude::*;
use testkit::image::HEADER_BYTES;
use testkit::keys::{self, all_at, at};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_operations_answer_as_the_model_says(
        mut bytes in prop::collection::vec(any::<u8>(), 5..300),
    ) {
        // A table of one size.
        bytes[1] &= 127;
        testkit::expiring::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_filter_that_grows_answers_as_the_model_says(
        (mut bytes, shape) in (prop::collection::vec(any::<u8>(), 5..120), 128_u8..),
    ) {
        bytes[1] = shape;
        testkit::expiring::run(&bytes);
    }
}

fn filter(capacity: u64, steps: u32) -> ExpiringFilter {
    let builder = ExpiringFilter::builder(capacity, 0.001).window(10 * u64::from(steps));
    builder.steps(steps).build().unwrap()
}

#[test]
fn impossible_builds_are_refused_with_a_reason() {
    let build = |window, steps, rate| {
        ExpiringFilter::builder(1000, rate).window(window).steps(steps).build().map(|_| ())
    };
    assert_eq!(build(0, 24, 0.01), Err(BuildError::Window { window: 0, steps: 24 }));
    assert_eq!(build(99, 0, 0.01), Err(BuildError::Window { window: 99, steps: 0 }));
    assert_eq!(build(99, 201, 0.01), Err(BuildError::Window { window: 99, steps: 201 }));
    assert!(matches!(build(99, 24, 0.0), Err(BuildError::Rate { .. })));
    assert!(matches!(build(99, 24, 1e-14), Err(BuildError::TooPrecise { .. })));
    assert_eq!(build(u64::MAX, 200, 0.01), Ok(()));
    let text = build(0, 24, 0.01).unwrap_err().to_string();
    assert!(text.contains("give a window"), "{text}");
}

#[test]
fn a_window_is_divided_into_steps_and_none_is_shorter_than_asked_for() {
    for (window, steps, expected) in
        [(600_000, 24, (25_000, 24, 600_000)), (10, 24, (1, 10, 10)), (100, 24, (5, 20, 100))]
    {
        let seen = ExpiringFilter::builder(10, 0.01).window(window).steps(steps).build().unwrap();
        assert_eq!((seen.step_ticks(), seen.steps(), seen.window()), expected);
    }
}

#[test]
fn sizes_are_those_of_the_decision_page() {
    for (steps, bits) in [(6, 20.0), (12, 20.9), (24, 20.1), (100, 21.7), (200, 23.7)] {
        let seen = filter(1_000_000, steps);
        assert!(seen.bits_per_key() <= bits, "{steps}: {}", seen.bits_per_key());
    }
}

#[test]
fn a_key_is_in_for_its_window_and_at_most_a_step_more() {
    for steps in [1, 2, 6, 24, 200] {
        let window = 10 * u64::from(steps);
        for start in [0, 3, 9, 1_000_007, u64::MAX - 2 * window - 20] {
            let mut seen = filter(100, steps);
            seen.advance(start);
            assert_eq!((seen.insert("ada"), seen.insert("ada")), (Ok(true), Ok(false)));
            for later in 0..=window + 10 {
                assert_eq!(seen.advance(start + later), u64::from(!seen.contains("ada")));
                assert_eq!(seen.len(), u64::from(seen.contains("ada")));
                assert!(later > window || seen.contains("ada"), "{steps} {start} {later}");
                if !seen.contains("ada") {
                    break;
                }
            }
            assert!(!seen.contains("ada") && seen.is_empty(), "{steps}, {start}");
        }
    }
}

#[test]
fn a_filter_takes_its_capacity_in_every_window_at_the_promised_rate() {
    for (steps, capacity) in [(1, 2000), (6, 40_000), (24, 40_000), (27, 500), (100, 40_000)] {
        let mut seen = filter(capacity, steps);
        let each = capacity / u64::from(steps);
        let mut stream = keys::hashes(steps.into(), u64::MAX);
        let mut wrong = 0.0;
        for step in 0..6 * u64::from(steps) {
            seen.advance(10 * step);
            let keys: Vec<u64> = stream.by_ref().take(each.try_into().unwrap()).collect();
            let mut new = vec![false; keys.len()];
            seen.insert_many(&all_at(&keys), &mut new).unwrap();
            wrong += seen.false_positive_rate() * keys.len() as f64;
            assert!(seen.false_positive_rate() <= 0.001, "{seen:?}");
        }
        assert!(seen.len() as f64 > 0.99 * capacity as f64 && wrong > 0.0);
        assert_eq!((seen.evicted(), seen.verify()), (0, Ok(())));
        assert!(seen.slots_in_use() - seen.len() <= seen.slots() / 20, "{seen:?}");
    }
}

/// The offsets of all bytes behind the header that differ.
fn changed(before: &[u8], after: &[u8]) -> Vec<usize> {
    (HEADER_BYTES..before.len()).filter(|&offset| before[offset] != after[offset]).collect()
}

/// However long a pause was, no call works on the whole table. Shown by the bytes that it changes.
#[test]
fn after_any_pause_time_changes_no_bucket_and_an_insert_only_groups_of_16() {
    for pause in [1, 6, 7, 8, 20, 25, 200, 100_000] {
        let mut seen = filter(40_000, 24);
        for hash in keys::hashes(1, 30_000) {
            seen.insert(&at(hash)).unwrap();
        }
        let (mut before, len) = (seen.to_bytes(), seen.len());
        seen.advance(10 * pause);
        let mut after = seen.to_bytes();
        // 16 bits for each group of 16 buckets, in records of 16 bytes.
        let buckets = usize::try_from(seen.buckets()).unwrap();
        let table = HEADER_BYTES..before.len() - 16 * buckets.div_ceil(16 * 8);
        let refreshes = pause > 16_384;
        let is_sweep = |offset: &usize| refreshes && *offset >= table.end;
        assert!(changed(&before, &after).iter().all(is_sweep), "{pause}");
        let (mut new, mut swept) = (0, 0);
        for hash in keys::hashes(2, 300) {
            new += u64::from(seen.insert(&at(hash)).unwrap());
            (before, after) = (after, seen.to_bytes());
            let of_table = changed(&before, &after).into_iter().filter(|at| table.contains(at));
            let group = |offset: usize| (offset - HEADER_BYTES) * buckets / table.len() / 16;
            let groups: BTreeSet<_> = of_table.map(group).collect();
            // Those of both buckets, and where an entry moved to. A group may begin within a byte.
            assert!(groups.len() <= 4, "{pause}: {groups:?}");
            swept += usize::from(changed(&before, &after).len() > 100);
        }
        assert_eq!(seen.verify(), Ok(()));
        assert_eq!(seen.len(), new + if pause > 24 { 0 } else { len });
        assert_eq!(swept > 100, pause > 24, "{pause}: {swept}");
    }
}

/// Keys come again and again: none is forgotten before its window ends.
fn forgotten_early(inserts: u64, keys: u64) -> u64 {
    let mut seen = filter(keys, 24);
    let mut last: HashMap<u64, u64> = HashMap::new();
    let (mut step, mut forgotten, each) = (0, 0, keys / 24);
    for (number, choice) in (0..inserts).zip(keys::hashes(7, inserts)) {
        if number % each == 0 {
            step += 1;
            seen.advance(10 * step);
        }
        // New keys and, mostly, those of some time ago.
        let key = if choice % 8 == 0 { number } else { number - choice % number.clamp(1, keys) };
        let new = seen.insert(&key).unwrap();
        let is_live = last.insert(key, step).is_some_and(|last| step - last <= 24);
        forgotten += u64::from(is_live && new);
        if number % (8 * keys) == 0 {
            last.retain(|_, last| step - *last <= 24);
        }
    }
    forgotten
}

#[test]
fn no_key_is_forgotten_early() {
    assert_eq!(forgotten_early(400_000, 20_000), 0);
}

#[test]
#[ignore = "takes two minutes: cargo test --release -p koel --test it -- --ignored forgotten"]
fn of_100_million_inserts_that_renew_none_is_forgotten_early() {
    assert_eq!(forgotten_early(100_000_000, 1_000_000), 0);
}

#[test]
fn absent_keys_are_found_as_often_as_promised() {
    let mut seen = filter(100_000, 24);
    for (i, hash) in (0..).zip(keys::hashes(1, 300_000)) {
        seen.advance(i / 420);
        seen.insert(&at(hash)).unwrap();
    }
    let rate = seen.false_positive_rate();
    assert!(rate <= 0.001 && rate > 0.001 / 4.5, "{rate}");
    let absent: Vec<u64> = keys::hashes(2, 4_000_000).collect();
    let mut found = vec![false; absent.len()];
    seen.contains_many(&all_at(&absent), &mut found);
    let (found, mean) = (found.iter().filter(|&&found| found).count() as f64, 4e6 * rate);
    assert!((found - mean).abs() < 5.0 * mean.sqrt(), "{found}, not {mean}");
}

#[test]
fn a_full_filter_evicts_old_keys() {
    let builder = ExpiringFilter::builder(2000, 0.001).window(240);
    let mut evicting = builder.when_full(WhenFull::EvictOldest).build().unwrap();
    assert_eq!((evicting.when_full(), evicting.youngest_evicted()), (WhenFull::EvictOldest, None));
    // A tenth too many.
    let stream: Vec<u64> = keys::hashes(3, 40_000).collect();
    for (i, &hash) in (0..).zip(&stream) {
        evicting.advance(i / 10);
        assert!(evicting.insert(&at(hash)).is_ok());
        assert!(evicting.contains(&at(hash)));
    }
    assert!(evicting.evicted() > 1000, "{}", evicting.evicted());
    let youngest = evicting.youngest_evicted().unwrap();
    assert!(youngest >= 15, "{youngest}");
    let kept = stream.iter().rev().take(1500);
    assert!(kept.clone().all(|&hash| evicting.contains(&at(hash))));
    assert_eq!(evicting.verify(), Ok(()));
}

/// A message or a clock that is far ahead once ended the life of every key.
#[test]
fn a_jump_beyond_the_limit_is_refused_and_changes_nothing() {
    let mut filter = ExpiringFilter::builder(1000, 1e-6).window(600).build().unwrap();
    filter.advance(10_000);
    filter.insert("a").unwrap();
    let (began, copy) = (filter.step_began(), filter.clone());
    let error = filter.advance_within(began + 601, 600).unwrap_err();
    assert_eq!((error.now, error.ahead, error.most), (began + 601, 601, 600));
    assert!(filter == copy && filter.contains("a"));
    // Within it, and back, it is `advance`.
    let mut twin = filter.clone();
    for now in [began + 300, began + 900, 0, began + 1100] {
        assert_eq!(filter.advance_within(now, 600), Ok(twin.advance(now)));
        assert!(filter == twin);
    }
}

#[test]
fn a_late_event_expires_with_those_of_its_time() {
    let build = || ExpiringFilter::builder(1000, 1e-6).window(600).steps(6).build().unwrap();
    for then in (0..2000_u64).step_by(37) {
        let mut late = build();
        late.advance(1500);
        let was_new = late.insert_at("late", then).unwrap();
        assert!(was_new);
        let mut timely = build();
        timely.advance(then.min(1500));
        timely.insert("late").unwrap();
        for now in (1500..2200).step_by(50) {
            timely.advance(now);
            late.advance(now);
            assert_eq!(late.contains("late"), timely.contains("late"), "{then} {now}");
        }
    }
    // It renews nothing, and does not shorten a life.
    let mut filter = build();
    filter.advance(1500);
    filter.insert("early").unwrap();
    assert!(!filter.insert_at("early", 1200).unwrap());
    assert_eq!(filter.age("early"), Some(0));
}
