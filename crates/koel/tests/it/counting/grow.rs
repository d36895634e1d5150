//! Growing counting filters: no count is ever too low, also after removals, and few are too high.

use koel::CountingFilter;
use testkit::keys::{self, all_at, at};

use crate::subject::Subject;

/// The count of the key with this number: mostly 1, rarely very large.
fn times(number: u64) -> u64 {
    match number % 100 {
        0 => 1000,
        1..10 => 5,
        _ => 1,
    }
}

#[test]
fn no_count_is_too_low_while_keys_come_and_go() {
    for mut filter in CountingFilter::growing() {
        let hashes: Vec<u64> = keys::hashes(1, 60_000).collect();
        let mut exact = vec![0; hashes.len()];
        let mut len = 0;
        for (number, &hash) in (0..).zip(&hashes) {
            let i = usize::try_from(number).unwrap();
            assert!(filter.add(&at(hash), times(number)).unwrap() >= times(number));
            exact[i] = times(number);
            len += times(number);
            // Adds 1 to an earlier key and subtracts 1 from another.
            let again = usize::try_from(keys::splitmix64(number) % (number + 1)).unwrap();
            assert!(filter.insert(&at(hashes[again])).unwrap() > exact[again]);
            exact[again] += 1;
            let gone = usize::try_from(keys::splitmix64(!number) % (number + 1)).unwrap();
            len += 1 - u64::from(exact[gone] > 0);
            if exact[gone] > 0 {
                exact[gone] -= 1;
                assert!(filter.remove(&at(hashes[gone])));
            }
            assert_eq!(filter.len(), len);
        }
        let low = |filter: &CountingFilter, exact: &[u64]| {
            hashes
                .iter()
                .zip(exact)
                .filter(|&(&hash, &count)| filter.count(&at(hash)) < count)
                .count()
        };
        assert_eq!(low(&filter, &exact), 0, "{filter:?}");
        assert_eq!(filter.verify(), Ok(()));
        assert!(filter.counts().fold(0, u64::saturating_add) >= len);
        // Removes half of the keys, one count at a time; the others keep their counts.
        for (i, &hash) in hashes.iter().enumerate().filter(|(i, _)| i % 2 == 0) {
            (0..exact[i]).for_each(|_| assert!(filter.remove(&at(hash)), "{filter:?}"));
            exact[i] = 0;
        }
        let before = filter.load_factor();
        for is_shrunk in [false, true] {
            assert_eq!(low(&filter, &exact), 0, "{filter:?}");
            assert_eq!(filter.len(), exact.iter().sum::<u64>());
            assert_eq!(filter.verify(), Ok(()));
            assert!(!is_shrunk || filter.load_factor() > 1.6 * before, "{before} {filter:?}");
            filter.shrink_to_fit();
        }
        // Removes the rest.
        for (&hash, &count) in hashes.iter().zip(&exact) {
            (0..count).for_each(|_| assert!(filter.remove(&at(hash)), "{filter:?}"));
        }
        assert!(filter.is_empty());
    }
}

#[test]
fn wrong_counts_are_as_rare_as_promised_and_the_others_are_exact() {
    for rate in [0.01, 0.001] {
        let builder = CountingFilter::builder(200_000, rate).grow_from(1000);
        let mut filter = builder.build().unwrap();
        let present: Vec<u64> = keys::hashes(1, 200_000).collect();
        let stream: Vec<u64> = (0..)
            .zip(&present)
            .flat_map(|(number, &hash)| {
                std::iter::repeat_n(hash, usize::try_from(times(number).min(300)).unwrap())
            })
            .collect();
        filter.insert_many(&all_at(&stream)).unwrap();
        assert!(filter.load_factor() > 0.86 && filter.distinct_counters() >= 2000, "{filter:?}");
        let expected = filter.false_positive_rate();
        assert!(expected <= rate * 1.05, "{filter:?}: {expected}");
        let absent: Vec<u64> = keys::hashes(2, 1_000_000).collect();
        let mut counts = vec![0; absent.len()];
        filter.count_many(&all_at(&absent), &mut counts);
        let wrong = counts.iter().filter(|&&count| count > 0).count() as f64;
        let mean = 1e6 * expected;
        assert!((wrong - mean).abs() < 6.0 * mean.sqrt() + 6.0, "{filter:?}: {wrong}, not {mean}");
        let high = (0..).zip(&present).filter(|&(number, &hash)| {
            let count = filter.count(&at(hash));
            assert!(count >= times(number).min(300));
            count > times(number).min(300)
        });
        // Keys inserted before and after a key can raise its count: at most about twice the rate.
        let most = 2.0 * expected * present.len() as f64;
        let high = high.count() as f64;
        assert!(high < most + 3.0 * most.sqrt(), "{filter:?}: {high}, not {most}");
    }
}

/// A filter grown from a thousand keys once refused the 382,110th key: its only bucket was full of
/// similar keys.
#[test]
fn a_filter_that_started_small_has_room_for_every_key() {
    const FIRST: u64 = 0x3773_3d00_0000_0000;
    const STRIDE: u64 = 0xf1de_83e1_9937_733d;
    let mut filter = CountingFilter::builder(1000, 0.01).grow_from(0).build().unwrap();
    for i in 0..400_000_u64 {
        let key = FIRST.wrapping_add(i.wrapping_mul(STRIDE));
        assert!(filter.insert(&at(keys::splitmix64(key))).is_ok(), "key {i}");
    }
}
