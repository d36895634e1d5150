//! The maplet: its limits, and changes of its values. `multiset.rs` and `alike.rs` have what it
//! shares with other types.

use koel::{BuildError, FullError, InsertError, KeyHash, Maplet, MapletView, Values};
use testkit::image;
use testkit::keys::{self, at};

use crate::subject::Subject;
use crate::support::forged;

#[test]
fn the_layouts_match_the_documentation() {
    let layouts = Maplet::fixed(1_000_000).into_iter().map(|maplet| maplet.layout().to_string());
    let expected = ["4x11+5", "4x9+1", "4x14+12", "4x24+40", "4x32+7"];
    assert!(layouts.eq(expected.map(|widths| format!("plain {widths}"))));
    for capacity in [1_000_000, 10_000_000] {
        let bits = |rate, value_bits| {
            Maplet::builder(capacity, rate, value_bits).build().unwrap().bits_per_entry()
        };
        assert!(bits(0.004, 5) <= 17.0);
        assert!(bits(1e-5, 40) <= 72.0);
    }
    // A location of 40 bits is wrong once in a million times.
    let mut locations = Maplet::builder(10_000, 1e-5, 40).build().unwrap();
    keys::hashes(1, 10_000).for_each(|hash| locations.insert(&at(hash), hash >> 24).unwrap());
    assert!(locations.false_candidates() <= 1e-6, "{}", locations.false_candidates());
}

#[test]
fn impossible_builds_are_refused_with_a_reason() {
    let build = |rate, bits| Maplet::builder(1000, rate, bits).build().unwrap_err();
    assert_eq!(build(0.01, 0), BuildError::ValueBits { value_bits: 0 });
    assert_eq!(build(0.01, 41), BuildError::ValueBits { value_bits: 41 });
    assert!(build(0.01, 41).to_string().contains("1 to 40"));
    assert!(matches!(build(1.0, 5), BuildError::Rate { .. }));
    let BuildError::TooPrecise { smallest, .. } = build(1e-12, 5) else { panic!("a layout") };
    assert!(Maplet::builder(1000, smallest, 5).build().is_ok());
    let huge = Maplet::builder(u64::MAX, 0.01, 5).build().unwrap_err();
    assert!(matches!(huge, BuildError::TooLarge { capacity: u64::MAX, largest: 1.. }), "{huge:?}");
}

/// Checks the figures in the documentation of `Maplet`, as lower and upper bounds.
#[test]
fn several_values_of_every_key_need_more_room_or_are_in_the_stash() {
    let stashed = |values: u64, room: u64| {
        let mut maplet = Maplet::builder(room, 0.004, 5).build().unwrap();
        let insert = |value| {
            keys::hashes(1, 300_000 / values).map(move |hash| (hash, value)).collect::<Vec<_>>()
        };
        let all = (0..values).flat_map(insert);
        all.for_each(|(hash, value)| maplet.insert(&at(hash), value).unwrap());
        maplet.stashed_pairs()
    };
    assert_eq!(stashed(1, 300_000), 0);
    assert_eq!(stashed(2, 330_000), 0);
    assert!((300_000 / 33..300_000 / 24).contains(&stashed(2, 300_000)));
    assert!((300_000 / 10..300_000 / 8).contains(&stashed(3, 300_000)));
    // 19 on average.
    assert!((4..45).contains(&stashed(3, 450_000)));
}

#[test]
fn values_wider_than_the_maplet_are_never_found() {
    for mut maplet in Maplet::fixed(100) {
        let last = (1 << maplet.layout().value_bits()) - 1;
        maplet.insert("key", last).unwrap();
        maplet.insert("zero", 0).unwrap();
        for beyond in [last + 1, last << 1 | 1, u64::MAX, 1 << 63] {
            assert!(!maplet.remove("key", beyond));
            assert_eq!(maplet.replace("zero", beyond, 0), Ok(false));
            let (mut removed, mut replaced) = ([true; 2], [true; 2]);
            maplet.remove_many(&["key", "zero"], &[beyond; 2], &mut removed);
            maplet.replace_many(&["key", "zero"], &[(beyond, 0); 2], &mut replaced).unwrap();
            assert_eq!([removed, replaced], [[false; 2]; 2]);
        }
        assert_eq!(maplet.get("key").collect::<Vec<_>>(), [last]);
        assert_eq!(maplet.get("zero").collect::<Vec<_>>(), [0]);
        assert!(maplet.remove("zero", 0) && !maplet.contains("zero"));
    }
}

#[test]
fn a_value_too_wide_is_refused_not_truncated() {
    let builder = Maplet::builder(10, 0.01, 5);
    for builder in [builder.clone(), builder.grow_from(10)] {
        let mut maplet = builder.build().unwrap();
        maplet.insert("key", 31).unwrap();
        let keys = ["other", "key"];
        type Change = fn(&mut Maplet, [&str; 2]) -> Result<(), InsertError>;
        let changes: [Change; 4] = [
            |maplet, _| maplet.insert("key", 32),
            |maplet, _| maplet.replace("key", 31, 32).map(|_| ()).map_err(InsertError::Value),
            |maplet, keys| maplet.insert_many(&keys, &[3, 32]),
            |maplet, keys| Ok(maplet.replace_many(&keys, &[(3, 4), (31, 32)], &mut [false; 2])?),
        ];
        for change in changes {
            let error = change(&mut maplet, keys).unwrap_err();
            assert!(matches!(error, InsertError::Value(error) if error.value == 32));
            assert_eq!(
                error.to_string(),
                "the value 32 does not fit into the 5 bits of this maplet"
            );
            assert!(maplet.get("key").eq([31]) && maplet.len() == 1 && maplet.verify().is_ok());
        }
        assert_eq!(maplet.replace("key", 31, 3), Ok(true));
        assert!(maplet.get("key").eq([3]));
    }
}

#[test]
fn relabelling_equals_replacing_every_pair() {
    for fixed in Maplet::fixed(1000) {
        let value_bits = fixed.layout().value_bits();
        let growing = Maplet::builder(1000, 0.004, value_bits).grow_from(100).build().unwrap();
        for mut maplet in [fixed, growing] {
            let hashes: Vec<_> = keys::hashes(8, 1000).collect();
            let value = |hash: u64| hash & ((1 << value_bits) - 1) & 0x41;
            for &hash in &hashes {
                maplet.insert(&at(hash), value(hash)).unwrap();
            }
            let last = (1 << value_bits) - 1;
            // Regression: 32 and more were taken for other values.
            let none = (vec![32, 33], 1);
            let some = [(vec![0], last), (vec![1, 65], 0), (vec![], 1), (vec![last, 0], 1)];
            for (old, new) in some.into_iter().chain([none]) {
                let before: Vec<_> = maplet.entries().collect();
                let is_old = |value: u64| old.contains(&value);
                let count = before.iter().filter(|entry| is_old(entry.value)).count() as u64;
                assert_eq!(maplet.relabel(&old, new), Ok(count));
                let relabelled = before.iter().map(|entry| {
                    let value = if is_old(entry.value) { new } else { entry.value };
                    (entry.bucket, entry.fingerprint, value)
                });
                let after =
                    maplet.entries().map(|entry| (entry.bucket, entry.fingerprint, entry.value));
                assert!(relabelled.eq(after), "{old:?} to {new}: {maplet:?}");
                assert_eq!(maplet.verify(), Ok(()));
            }
            let before = maplet.to_bytes();
            assert_eq!(maplet.relabel(&[1], last + 1).unwrap_err().value, last + 1);
            assert!(maplet.to_bytes() == before);
        }
    }
}

#[test]
fn the_ninth_value_of_a_key_is_in_the_stash_without_growth() {
    for mut maplet in Maplet::growing().into_iter().chain(Maplet::fixed(20_000)) {
        let keys: Vec<KeyHash> = keys::hashes(1, 10_000).map(at).collect();
        let values: Vec<u64> = (0..10_000).map(|number| maplet.value(number)).collect();
        maplet.insert_many(&keys, &values).unwrap();
        let (key, buckets) = (at(keys::splitmix64(77)), maplet.slots() / 4);
        let last = (1 << maplet.layout().value_bits()) - 1;
        (0..50).for_each(|_| maplet.insert(&key, last).unwrap());
        maplet.insert_many(&[key; 50], &[last - 1; 50]).unwrap();
        // Equal pairs have a record each, and one step of growth may have been due.
        assert_eq!(maplet.stashed_pairs(), 2, "{maplet:?}");
        assert!(maplet.slots() / 4 <= buckets + 4096);
        assert_eq!(maplet.verify(), Ok(()));
        let bytes = maplet.to_bytes();
        let view = MapletView::open(&bytes).unwrap();
        for found in [maplet.get(&key), view.get(&key)] {
            let values: Vec<u64> = found.clone().collect();
            assert!(found.len() == values.len() && (2..=10).contains(&values.len()));
            assert!(values.contains(&last) && values.contains(&(last - 1)));
        }
        assert_eq!(maplet.replace(&key, last, last - 1), Ok(true));
        assert!(maplet.relabel(&[last - 1], last).unwrap() >= 51);
        let mut removed = [false; 101];
        maplet.remove_many(&[key; 101], &[last; 101], &mut removed);
        assert_eq!(removed.iter().filter(|&&removed| removed).count(), 100);
        assert_eq!((maplet.stashed_pairs(), maplet.get(&key).len()), (0, 0));
    }
}

#[test]
fn a_batch_replaces_the_values_that_single_calls_replace() {
    for mut one in Maplet::fixed(10_000).into_iter().chain(Maplet::growing()) {
        let keys: Vec<KeyHash> = keys::hashes(1, 10_000).map(at).collect();
        let values: Vec<u64> = (0..10_000).map(|number| one.value(number)).collect();
        one.insert_many(&keys, &values).unwrap();
        let mut many = one.clone();
        // Half of the changes name values that are absent.
        let old = |number: u64| one.value(number & !1 | number & number >> 1 & 1);
        let changes: Vec<(u64, u64)> =
            (0..10_000).map(|number| (old(number), one.value(!number))).collect();
        let mut changed = vec![false; keys.len()];
        many.replace_many(&keys, &changes, &mut changed).unwrap();
        let each = keys.iter().zip(&changes);
        let singly = each.map(|(key, &(old, new))| one.replace(key, old, new).unwrap());
        assert!(singly.eq(changed.iter().copied()) && many == one);
        assert!(changed.contains(&true) && changed.contains(&false));
    }
}

#[test]
fn wrong_values_of_a_grown_maplet_are_as_rare_as_promised() {
    for mut maplet in Maplet::growing() {
        let keys: Vec<KeyHash> = keys::hashes(1, 150_000).map(at).collect();
        maplet.insert_many(&keys, &vec![1; keys.len()]).unwrap();
        assert!(maplet.load_factor() > 0.86, "{maplet:?}");
        let absent: Vec<KeyHash> = keys::hashes(2, 1_000_000).map(at).collect();
        let mut values = vec![Values::default(); absent.len()];
        maplet.get_many(&absent, &mut values);
        let wrong = values.into_iter().map(Iterator::count).sum::<usize>() as f64;
        let mean = 1e6 * maplet.false_candidates();
        assert!((wrong - mean).abs() < 6.0 * mean.sqrt() + 6.0, "{maplet:?}: {wrong}, not {mean}");
        assert!(maplet.false_candidates() <= maplet.requested_false_positive_rate());
    }
}

/// The number of pairs once went around to 0.
#[test]
fn a_maplet_of_the_most_pairs_refuses_another_unchanged() {
    for builder in [Maplet::builder(100, 0.01, 8), Maplet::builder(2000, 0.01, 8).grow_from(1)] {
        let mut maplet = builder.build().unwrap();
        (0..9_u64).for_each(|key| maplet.insert(&key, key).unwrap());
        let mut image = maplet.to_bytes();
        image::add_record(&mut image, "stashed keys", &[5, 3, u64::MAX - maplet.len()]);
        let mut maplet = Maplet::from_bytes(&forged(&image, &[("keys", u64::MAX)])).unwrap();
        let before = maplet.clone();
        let full = InsertError::Full(FullError::Overflow);
        assert_eq!(maplet.insert(&10_u64, 1), Err(full));
        assert_eq!(maplet.insert(&at(5), 3), Err(full));
        assert_eq!(maplet.insert_many(&[10_u64, 11], &[1, 2]), Err(full));
        assert!(maplet == before);
        assert!(maplet.remove(&0_u64, 0));
        assert_eq!((maplet.insert(&10_u64, 1), maplet.verify()), (Ok(()), Ok(())));
    }
}

/// Growth may leave more pairs than can be counted.
#[test]
fn new_values_for_all_pairs_are_counted_up_to_the_largest_number() {
    let mut maplet = Maplet::builder(2000, 0.01, 8).grow_from(1).build().unwrap();
    (0..9_u64).for_each(|key| maplet.insert(&key, key).unwrap());
    let mut image = maplet.to_bytes();
    image::add_record(&mut image, "stashed keys", &[5, 3, u64::MAX]);
    let mut maplet = Maplet::from_bytes(&forged(&image, &[("keys", u64::MAX)])).unwrap();
    assert_eq!(maplet.relabel(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 9), Ok(u64::MAX));
    assert_eq!(maplet.verify(), Ok(()));
}
