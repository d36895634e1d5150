//! What all types promise alike: each test is for several of them. `subject.rs` has what they have
//! in common.

use koel::{
    CountingFilter, CountingView, CuckooFilter, ExpiringFilter, ExpiringView, FilterView, Key,
    KeyHash, Maplet, MapletView, Prefer,
};
use testkit::image;
use testkit::keys::{self, at};

use crate::subject::{Shared, Subject, each};
use crate::support::{forged, read};

fn some_keys(seed: u64, count: u64) -> Vec<KeyHash> {
    keys::hashes(seed, count).map(at).collect()
}

/// Puts so many keys in. Returns them with their values.
fn fill<S: Subject>(it: &mut S, seed: u64, count: u64) -> (Vec<KeyHash>, Vec<u64>) {
    let values: Vec<u64> = (0..count).map(|number| it.value(number)).collect();
    let keys = some_keys(seed, count);
    it.put_many(&keys, &values).unwrap();
    (keys, values)
}

#[test]
fn every_capacity_fits_with_all_copies_and_removing_everything_leaves_zeros() {
    fn of<S: Subject>(copies: u64) {
        for capacity in (1..=300).chain([10_000, 300_000]) {
            for mut it in S::fixed(capacity) {
                let (empty, keys) = (it.to_bytes(), some_keys(capacity, capacity));
                let value = |it: &S, number| if copies > 1 { copies } else { it.value(number) };
                for (number, key) in (0..).zip(&keys) {
                    assert_eq!(it.put(key, value(&it, number)), Ok(()), "{it:?}");
                }
                assert_eq!(it.len(), copies * capacity);
                for (number, key) in (0..).zip(&keys) {
                    let value = value(&it, number);
                    assert!(it.has(key, value), "{it:?}");
                    assert!((0..copies).all(|_| it.take(key, value)), "{it:?}");
                }
                assert!(it.len() == 0 && it.to_bytes() == empty);
            }
        }
    }
    of::<Maplet>(1);
    for copies in [1, 5] {
        each!(of(copies): CuckooFilter, CountingFilter, Shared);
    }
}

#[test]
fn an_insert_that_fails_changes_no_byte_and_a_batch_stops_at_it() {
    fn of<S: Subject>() {
        for mut it in S::fixed(3000) {
            let (mut many, keys) = (it.clone(), some_keys(7, 8000));
            let values: Vec<u64> = (0..8000).map(|number| it.value(number)).collect();
            let (mut taken, mut refused) = (Vec::new(), 0);
            for (key, &value) in keys.iter().zip(&values) {
                let before = it.to_bytes();
                match it.put(key, value) {
                    Ok(()) => taken.push((key, value)),
                    Err(full) => {
                        assert!(it.to_bytes() == before, "{full}");
                        if refused == 0 {
                            assert_eq!(many.put_many(&keys, &values), Err(full));
                            assert!(many == it, "{it:?}");
                        }
                        refused += 1;
                    }
                }
                if refused == 100 {
                    break;
                }
            }
            assert!(refused == 100 && taken.len() >= 3000, "{it:?}");
            assert!(it.load_factor() > 0.95, "{it:?}");
            assert!(taken.into_iter().all(|(key, value)| it.has(key, value)));
            assert_eq!(it.verify(), Ok(()));
        }
    }
    each!(of(): CuckooFilter, CountingFilter, Maplet, ExpiringFilter, Shared);
}

/// Lengths around the sizes of groups and blocks.
const LENGTHS: [usize; 13] = [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 500, 1500];

/// A list in parts of these lengths.
fn parts<T>(mut all: &[T]) -> Vec<&[T]> {
    let lengths = LENGTHS.into_iter().cycle().map_while(|length| {
        let (part, rest) = all.split_at(length.min(all.len()));
        let was_empty = all.is_empty();
        all = rest;
        (!was_empty).then_some(part)
    });
    lengths.collect()
}

#[test]
fn batched_calls_equal_single_calls() {
    fn of<S: Subject>() {
        for capacity in [10, 64, 2000, 300_000] {
            for mut one in S::fixed(capacity) {
                let mut many = one.clone();
                // Some keys come twice.
                let keys = [some_keys(1, capacity / 2), some_keys(1, capacity / 4)].concat();
                let values: Vec<u64> = (0..).map(|it| one.value(it)).take(keys.len()).collect();
                for (keys, values) in parts(&keys).into_iter().zip(parts(&values)) {
                    many.put_many(keys, values).unwrap();
                    keys.iter().zip(values).for_each(|(key, &it)| one.put(key, it).unwrap());
                }
                assert!(many == one && many.to_bytes() == one.to_bytes());
                asks_and_takes(one, &keys);
            }
        }
        for mut one in S::growing() {
            let (keys, _) = fill(&mut one, 1, 20_000);
            asks_and_takes(one, &keys);
        }
    }
    /// Single and batched calls, for these keys and as many others, with a wrong value for half of
    /// the keys.
    fn asks_and_takes<S: Subject>(mut one: S, keys: &[KeyHash]) {
        let mut many = one.clone();
        let asked = [keys, &some_keys(2, keys.len() as u64)].concat();
        let value = |number: u64| one.value(number ^ u64::from(number % 4 > 1));
        let values: Vec<u64> = (0..asked.len() as u64).map(value).collect();
        for (asked, values) in parts(&asked).into_iter().zip(parts(&values)) {
            assert!(one.get_many(asked).into_iter().eq(asked.iter().map(|key| one.get(key))));
            let found = one.contains_many(asked).into_iter();
            assert!(found.eq(asked.iter().map(|key| one.contains(key))));
            let each = asked.iter().zip(values).map(|(key, &value)| one.take(key, value));
            let removed: Vec<bool> = each.collect();
            assert_eq!(many.take_many(asked, values), removed);
        }
        assert!(many == one && many.to_bytes() == one.to_bytes());
    }
    each!(of(): CuckooFilter, CountingFilter, Maplet, ExpiringFilter, Shared);
}

#[test]
fn a_hash_stands_for_its_key() {
    fn of<S: Subject, K: Key>(keys: &[K]) {
        // Also hashes that are trusted, and SipHash.
        let settings: [&[_]; 3] = [&[], &[("route", 1)], &[("hash", 1)]];
        let empty = S::fixed(100).into_iter().chain(S::growing());
        let with = |it: S| settings.map(|fields| S::from_bytes(&forged(&it.to_bytes(), fields)));
        for by_keys in empty.flat_map(with) {
            let mut by_keys = by_keys.unwrap();
            let (mut by_hashes, hasher) = (by_keys.clone(), by_keys.hasher());
            let hashes: Vec<KeyHash> = keys.iter().map(|key| hasher.hash(key)).collect();
            let values: Vec<u64> = (0..).map(|it| by_keys.value(it)).take(keys.len()).collect();
            by_keys.put_many(keys, &values).unwrap();
            by_hashes.put_many(&hashes, &values).unwrap();
            for ((key, hash), &value) in keys.iter().zip(&hashes).zip(&values) {
                by_keys.put(key, value).unwrap();
                by_hashes.put(hash, value).unwrap();
                assert!(by_keys.contains(key) && by_keys.contains(hash));
                assert_eq!(by_keys.get(key), by_hashes.get(hash));
            }
            assert!(by_keys == by_hashes && by_keys.contains_many(keys).iter().all(|&found| found));
            assert_eq!(by_keys.get_many(keys), by_hashes.get_many(&hashes));
            let removed = by_keys.take_many(&keys[1..], &values[1..]);
            assert_eq!(removed, by_hashes.take_many(&hashes[1..], &values[1..]));
            // An expiring filter has a key once, however often it came.
            assert_eq!(by_keys.take(&keys[0], values[0]), by_hashes.take(&hashes[0], values[0]));
            assert!(by_keys == by_hashes);
        }
    }
    fn of_each_key<S: Subject>() {
        of::<S, &str>(&["ada", "grace", "mary", "ada", "", "emmy noether"]);
        of::<S, u64>(&[1, 2, 2, u64::MAX]);
        of::<S, (u32, &str, bool)>(&[(1, "user", true), (2, "user", false)]);
        of::<S, String>(&["ada".to_owned(), "x".repeat(300)]);
    }
    each!(of_each_key(): CuckooFilter, CountingFilter, Maplet, ExpiringFilter, Shared);
}

/// Most other tests rely on `==`. This one tests `==` itself.
#[test]
fn two_of_a_type_are_equal_if_and_only_if_their_bytes_are() {
    fn of<S: Subject>(contents: &[&[(&str, u64)]], limits: &[(&str, u64)]) {
        let rate = 0.000_999_f64.to_bits();
        let settings = [("seed", 1), ("capacity", 99), ("requested rate", rate)];
        let settings = settings.iter().chain(limits).map(|&setting| vec![setting]);
        let settings: Vec<_> = settings.chain([vec![]]).collect();
        let mut all = Vec::new();
        for empty in [S::fixed(100), S::growing()].into_iter().filter_map(|mut all| all.pop()) {
            for setting in &settings {
                let empty = S::from_bytes(&forged(&empty.to_bytes(), setting)).unwrap();
                for content in contents {
                    let mut it = empty.clone();
                    content.iter().for_each(|&(key, value)| it.put(key, value).unwrap());
                    all.push(it);
                }
            }
        }
        for (i, one) in all.iter().enumerate() {
            assert!(*one == one.clone(), "{i}");
            for (j, other) in all.iter().enumerate() {
                assert_eq!(one.to_bytes() == other.to_bytes(), i == j, "{i} and {j}");
                assert_eq!(one == other, i == j, "{i} and {j}");
            }
        }
    }
    // The last two have equal entries, and equally many keys.
    let contents: [&[(&str, u64)]; 7] = [
        &[],
        &[("ada", 1)],
        &[("bo", 1)],
        &[("ada", 2)],
        &[("ada", 3)],
        &[("ada", 3), ("bo", 4)],
        &[("ada", 4), ("bo", 3)],
    ];
    of::<CuckooFilter>(&contents, &[("counter limit", 9)]);
    each!(of(&contents, &[]): CountingFilter, Maplet);
    of::<ExpiringFilter>(&contents[..3], &[("when full", 1)]);
}

/// A clone of a view reads the same bytes, and is as good as the view.
#[test]
fn a_view_is_cloned_without_its_bytes() {
    macro_rules! of {
        ($Type:ident, $View:ident) => {
            for mut it in $Type::fixed(1000).into_iter().chain($Type::growing()) {
                let (keys, _) = fill(&mut it, 1, 1000);
                let bytes = Subject::to_bytes(&it);
                let clone = $View::open(&bytes).unwrap().clone();
                assert!(clone.to_bytes() == bytes && clone.to_owned().unwrap() == it);
                assert!(keys.iter().all(|key| clone.contains(key)));
            }
        };
    }
    of!(CuckooFilter, FilterView);
    of!(CountingFilter, CountingView);
    of!(Maplet, MapletView);
    of!(ExpiringFilter, ExpiringView);
}

const QUERIES: u64 = 4_000_000;

/// From both sides: too few false positives would be a bug as well.
#[test]
fn absent_keys_are_reported_as_often_as_said_and_present_ones_get_too_much_as_rarely() {
    fn of<S: Subject>(all: Vec<S>, least: f64) {
        let absent = some_keys(99, QUERIES);
        for mut it in all {
            let requested = f64::from_bits(read(&it.to_bytes(), "requested rate"));
            let (keys, values) = (some_keys(1, 200_000), (0..).map(|number| it.value(number)));
            let values: Vec<u64> = values.take(200_000).collect();
            for part in [0..20_000, 20_000..100_000, 100_000..200_000] {
                it.put_many(&keys[part.clone()], &values[part]).unwrap();
                let rate = it.false_positive_rate();
                let wrong = it.contains_many(&absent).into_iter().filter(|&found| found).count();
                let (wrong, mean) = (wrong as f64, QUERIES as f64 * rate);
                assert!(
                    (wrong - mean).abs() < 5.0 * mean.sqrt().max(1.0),
                    "{it:?}: {wrong} {mean}"
                );
            }
            let rate = it.false_positive_rate();
            assert!(rate <= requested && rate > requested / least, "{it:?}: {rate}");
            let found = it.get_many(&keys).into_iter().zip(&values);
            let wrong = found.filter(|(found, value)| *found != [**value]).count();
            // Two keys with one entry give too much to each other, which doubles the variance.
            let (wrong, mean) = (wrong as f64, 200_000.0 * rate);
            assert!((wrong - mean).abs() < 5.0 * (2.0 * mean).sqrt().max(1.0), "{it:?}: {wrong}");
        }
    }
    // The widths of fast filters are up to eight bits apart.
    for (prefer, least) in [(Prefer::Small, 2.5), (Prefer::Fast, 300.0)] {
        let builder = |rate| CuckooFilter::builder(200_000, rate).prefer(prefer).build().unwrap();
        of([0.03, 0.015, 0.004, 0.001, 0.000_2, 0.000_06].map(builder).into(), least);
    }
    let counting = |(rate, bits)| CountingFilter::builder(200_000, rate).count_bits(bits).build();
    of([(0.05, 1), (0.002, 8), (0.001, 3)].map(|way| counting(way).unwrap()).into(), 4.5);
    let maplet = |(rate, bits)| Maplet::builder(200_000, rate, bits).build().unwrap();
    let ways = [(0.05, 3), (0.004, 5), (0.002, 9), (0.000_3, 14), (1e-5, 12)];
    of(ways.map(maplet).into(), 4.5);
    // Buckets are as wide as words.
    of(Shared::fixed(200_000), 20.0);
}

mod growth {
    use super::*;

    /// Keys come and go while the table grows: none is lost, and all can be removed.
    #[test]
    fn removed_keys_are_gone_and_all_others_stay() {
        fn of<S: Subject>() {
            for mut it in S::growing() {
                let (keys, values) = fill(&mut it, 1, 60_000);
                assert!(it.load_factor() > 0.77, "{it:?}");
                let new = some_keys(2, 60_000);
                for i in (0..60_000).step_by(2) {
                    assert!(it.take(&keys[i], values[i]), "{it:?}");
                    it.put(&new[i], values[i]).unwrap();
                }
                let now = |i: usize| if i.is_multiple_of(2) { &new[i] } else { &keys[i] };
                assert!((0..60_000).all(|i| it.has(now(i), values[i])), "{it:?}");
                assert_eq!((it.len(), it.verify()), (60_000, Ok(())));
                let now: Vec<KeyHash> = (0..60_000).map(|i| *now(i)).collect();
                assert!(it.take_many(&now, &values).into_iter().all(|removed| removed), "{it:?}");
                assert_eq!((it.len(), it.verify()), (0, Ok(())));
            }
        }
        each!(of(): CuckooFilter, CountingFilter, Maplet);
    }

    #[test]
    fn shrinking_returns_room_and_loses_no_key() {
        fn of<S: Subject>(part: u64) {
            for mut it in S::growing() {
                let (keys, values) = fill(&mut it, 1, 80_000);
                let grown = it.slots();
                let others = || (0..80_000).filter(|i| i % 8 > 0);
                assert!(others().all(|i| it.take(&keys[i], values[i])), "{it:?}");
                it.shrink_to_fit();
                assert!(it.slots() < grown / part, "{grown} {it:?}");
                assert_eq!(it.verify(), Ok(()));
                assert!(S::from_bytes(&it.to_bytes()).unwrap() == it);
                assert!((0..80_000).step_by(8).all(|i| it.has(&keys[i], values[i])), "{it:?}");
                let smallest = it.clone();
                it.shrink_to_fit();
                assert!(it == smallest);
                // It grows again, and every key can be taken out.
                others().for_each(|i| it.put(&keys[i], values[i]).unwrap());
                assert!((0..80_000).all(|i| it.take(&keys[i], values[i])), "{it:?}");
                assert_eq!(it.len(), 0);
            }
        }
        of::<Maplet>(7);
    }

    /// Entries without stored bits have halves in many buckets. In a table that is too small they
    /// would share two buckets, so such tables once failed to shrink.
    #[test]
    fn the_oldest_entries_are_moved_to_a_smaller_table_too() {
        fn of<S: Subject>(all: Vec<S>) {
            for mut it in all {
                let (keys, values) = fill(&mut it, 1, 60_000);
                let grown = it.size_in_bytes();
                assert!((300..60_000).all(|i| it.take(&keys[i], values[i])), "{it:?}");
                it.shrink_to_fit();
                assert!(it.size_in_bytes() < grown * 2 / 3, "{} of {grown}: {it:?}", it.slots());
                assert_eq!(it.verify(), Ok(()));
                assert!((0..300).all(|i| it.take(&keys[i], values[i])), "{it:?}");
                assert_eq!(it.len(), 0);
            }
        }
        of(CuckooFilter::growing());
        of(CountingFilter::growing());
        // From 100 buckets.
        let small =
            |it: Maplet| Maplet::from_bytes(&image::reshape(&it.to_bytes(), 0, 100)).unwrap();
        of(Maplet::growing().into_iter().map(small).collect());
    }

    #[test]
    fn a_cleared_table_is_as_large_as_it_was_and_takes_other_keys() {
        fn of<S: Subject>() {
            for mut it in S::growing() {
                let (keys, _) = fill(&mut it, 1, 60_000);
                keys[..500].iter().for_each(|key| it.put(key, 5).unwrap());
                let slots = it.slots();
                it.clear();
                assert_eq!((it.len(), it.slots(), it.load_factor()), (0, slots, 0.0));
                assert!(it.false_positive_rate() == 0.0 && it.verify() == Ok(()));
                assert!(!keys.iter().any(|key| it.contains(key)));
                let (keys, values) = fill(&mut it, 2, 60_000);
                assert_eq!((it.len(), it.slots(), it.verify()), (60_000, slots, Ok(())));
                assert!(keys.iter().zip(values).all(|(key, value)| it.has(key, value)));
            }
        }
        each!(of(): CuckooFilter, CountingFilter, Maplet);
    }

    #[test]
    fn single_and_batched_calls_make_equal_bytes_which_are_read_back() {
        fn of<S: Subject>() {
            for mut many in S::growing() {
                let mut one = many.clone();
                let (keys, values) = fill(&mut many, 1, 5000);
                keys.iter().zip(&values).for_each(|(key, &value)| one.put(key, value).unwrap());
                let bytes = many.to_bytes();
                assert!(one == many && one.to_bytes() == bytes);
                let read_back = S::from_bytes(&bytes).unwrap();
                assert!(read_back == many && read_back.get_many(&keys) == one.get_many(&keys));
                for field in ["level", "split buckets", "match weight", "entries"] {
                    let image = forged(&bytes, &[(field, read(&bytes, field) ^ 1)]);
                    assert!(S::from_bytes(&image).is_err(), "{field}");
                }
            }
        }
        each!(of(): CountingFilter, Maplet);
    }
    /// A bench found that segments were split one after another, so the last one gained no room
    /// until nearly all were split. A filter of 16 million keys doubled its memory as soon as it
    /// grew, or refused the key.
    #[test]
    fn tables_of_several_segments_grow_no_faster_than_their_keys() {
        fn of<S: Subject>(mut it: S, first: u64, last: u64, least_load: f64) {
            assert!(read(&it.to_bytes(), "segment bits") > 0, "{it:?}");
            let keys = some_keys(3, last);
            // Single inserts, which reserve no room.
            for (number, key) in (0..).zip(&keys) {
                it.put(key, it.value(number)).unwrap();
                if number > first && number % (first / 50) == 0 {
                    assert!(it.load_factor() > least_load, "{it:?}");
                }
            }
            assert!(it.contains_many(&keys).into_iter().all(|found| found));
            assert_eq!(it.verify(), Ok(()));
            assert!(S::from_bytes(&it.to_bytes()).unwrap() == it);
            let values: Vec<u64> = (0..last).map(|number| it.value(number)).collect();
            assert!(keys.iter().zip(&values).all(|(key, &value)| it.has(key, value)));
            assert!(it.take_many(&keys, &values).into_iter().all(|removed| removed));
            assert_eq!((it.len(), it.load_factor()), (0, 0.0));
        }
        const KEYS: u64 = 1_000_000;
        let small = CuckooFilter::builder(KEYS, 1e-6);
        of(small.clone().growable().build().unwrap(), KEYS, 3 * KEYS, 0.85);
        let far = CuckooFilter::builder(2 * KEYS, 1e-6).grow_from(KEYS);
        of(far.build().unwrap(), KEYS, 3 * KEYS, 0.85);
        of(small.prefer(Prefer::Fast).growable().build().unwrap(), KEYS, 3 * KEYS, 0.78);
        let maplet = Maplet::builder(4_000_000, 0.001, 38).grow_from(400_000).build().unwrap();
        of(maplet, 400_000, KEYS, 0.86);
    }
}
