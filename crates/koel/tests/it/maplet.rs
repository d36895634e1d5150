//! The maplet: limits and batches. Submodules test it against a model, its growth, its rates and
//! its bytes.

mod grow;
mod image;
mod model;
mod rates;

use koel::{BuildError, FullError, InsertError, Maplet, Values};
use testkit::addressing::Addressing;
use testkit::keys;
use testkit::keys::{all_at, at};

/// A maplet of each packing: buckets of 64, 128 and 256 bits.
fn of_each_form(capacity: u64) -> [Maplet; 5] {
    [(0.004, 5), (0.1, 1), (0.001, 12), (1e-5, 40), (1e-8, 7)]
        .map(|(rate, bits)| Maplet::builder(capacity, rate, bits).build().unwrap())
}

/// A value for a hash, of the maplet's width.
fn value_of(maplet: &Maplet, hash: u64) -> u64 {
    hash & ((1 << maplet.layout().value_bits()) - 1)
}

#[test]
fn the_layouts_match_the_documentation() {
    let layouts = of_each_form(1_000_000).map(|maplet| maplet.layout().to_string());
    let expected = ["4x11+5", "4x9+1", "4x14+12", "4x24+40", "4x32+7"];
    assert_eq!(layouts, expected.map(|widths| format!("plain {widths}")));
    for capacity in [1_000_000, 10_000_000] {
        let bits = |rate, value_bits| {
            Maplet::builder(capacity, rate, value_bits).build().unwrap().bits_per_entry()
        };
        assert!(bits(0.004, 5) <= 17.0);
        assert!(bits(1e-5, 40) <= 72.0);
    }
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

#[test]
fn every_capacity_fits_and_removing_everything_leaves_zeros() {
    for capacity in (1..=300).chain([10_000, 1_000_000]) {
        for mut maplet in of_each_form(capacity) {
            let empty = maplet.to_bytes();
            for hash in keys::hashes(capacity, capacity) {
                let value = value_of(&maplet, hash);
                assert_eq!(maplet.insert(&at(hash), value), Ok(()), "{maplet:?}");
            }
            assert_eq!(maplet.len(), capacity);
            for hash in keys::hashes(capacity, capacity) {
                let value = value_of(&maplet, hash);
                assert!(maplet.get(&at(hash)).any(|found| found == value), "{maplet:?}");
                assert!(maplet.remove(&at(hash), value));
            }
            assert!(maplet.to_bytes() == empty);
        }
    }
}

#[test]
fn an_insert_that_fails_changes_nothing() {
    for mut maplet in of_each_form(3000) {
        let mut failures = 0;
        for hash in keys::hashes(7, 2 * maplet.slots()) {
            let before = maplet.to_bytes();
            if let Err(error) = maplet.insert(&at(hash), value_of(&maplet, hash)) {
                let full = FullError::Slots { in_use: maplet.len(), capacity: 3000 };
                assert_eq!(error, InsertError::Full(full));
                assert!(maplet.to_bytes() == before);
                failures += 1;
            }
            if failures == 100 {
                break;
            }
        }
        assert_eq!(failures, 100);
        assert!(maplet.load_factor() > 0.95, "{maplet:?}");
    }
}

#[test]
fn a_key_has_room_for_eight_values_and_the_ninth_is_refused() {
    for mut maplet in of_each_form(1000) {
        let addressing = Addressing::of(&maplet.to_bytes());
        for hash in keys::hashes(3, 40) {
            maplet.clear();
            let (home, other) = addressing.pair(hash);
            let held = if home == other { 4 } else { 8 };
            // Values repeat where only two exist.
            (0..held).for_each(|i| maplet.insert(&at(hash), i & 1).unwrap());
            let before = maplet.to_bytes();
            let error = maplet.insert(&at(hash), 1).unwrap_err();
            assert_eq!(error, InsertError::Full(FullError::Values { held }));
            assert!(error.to_string().contains(&format!("{held} values")));
            assert!(maplet.to_bytes() == before);
            assert_eq!(maplet.get(&at(hash)).len() as u64, held);
            assert_eq!(maplet.get(&at(hash)).sum::<u64>(), held / 2);
            assert_eq!(maplet.replace(&at(hash), 1, 0), Ok(true));
            assert_eq!(maplet.get(&at(hash)).sum::<u64>(), held / 2 - 1);
        }
    }
}

/// Checks the figures in the documentation of `Maplet`, as lower and upper bounds.
#[test]
fn several_values_of_every_key_need_more_room() {
    let refused = |values: u64, room: u64| {
        let mut maplet = Maplet::builder(room, 0.004, 5).build().unwrap();
        let insert = |value| {
            keys::hashes(1, 300_000 / values).map(move |hash| (hash, value)).collect::<Vec<_>>()
        };
        let all = (0..values).flat_map(insert);
        all.filter(|&(hash, value)| maplet.insert(&at(hash), value).is_err()).count()
    };
    assert_eq!(refused(1, 300_000), 0);
    assert_eq!(refused(2, 330_000), 0);
    assert!((300_000 / 33..300_000 / 24).contains(&refused(2, 300_000)));
    assert!((300_000 / 10..300_000 / 8).contains(&refused(3, 300_000)));
    // 19 on average.
    assert!((4..45).contains(&refused(3, 450_000)));
}

#[test]
fn values_wider_than_the_maplet_are_never_found() {
    for mut maplet in of_each_form(100) {
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
fn batched_calls_equal_single_calls() {
    for capacity in [10, 64, 1000, 300_000] {
        for mut one_by_one in of_each_form(capacity) {
            let mut many = one_by_one.clone();
            let hashes: Vec<_> = keys::hashes(1, capacity).collect();
            let values: Vec<_> = hashes.iter().map(|&hash| value_of(&many, hash)).collect();
            for (&hash, &value) in hashes.iter().zip(&values) {
                one_by_one.insert(&at(hash), value).unwrap();
            }
            many.insert_many(&all_at(&hashes), &values).unwrap();
            assert!(many == one_by_one && many.to_bytes() == one_by_one.to_bytes());
            let asked: Vec<_> = hashes.into_iter().chain(keys::hashes(2, capacity + 7)).collect();
            let mut found = vec![Values::default(); asked.len()];
            many.get_many(&all_at(&asked), &mut found);
            let mut each = asked.iter().zip(found);
            assert!(each.all(|(&hash, values)| many.get(&at(hash)).eq(values)));
            let mut found = vec![false; asked.len()];
            many.contains_many(&all_at(&asked), &mut found);
            let mut each = asked.iter().zip(found);
            assert!(each.all(|(&hash, found)| many.contains(&at(hash)) == found));
            // Half of the changes name values that are absent.
            let change = |&hash: &u64| (value_of(&many, hash), value_of(&many, hash >> 1));
            let changes: Vec<_> = asked.iter().map(change).collect();
            let each = asked.iter().zip(&changes);
            let singly =
                each.map(|(&hash, &(old, new))| one_by_one.replace(&at(hash), old, new).unwrap());
            let mut changed = vec![false; asked.len()];
            many.replace_many(&all_at(&asked), &changes, &mut changed).unwrap();
            assert!(singly.eq(changed) && many == one_by_one);
            // Half of the pairs to remove are present.
            let values: Vec<_> = asked.iter().map(|&hash| value_of(&many, hash >> 1)).collect();
            let each = asked.iter().zip(&values);
            let singly = each.map(|(&hash, &value)| one_by_one.remove(&at(hash), value));
            let mut removed = vec![false; asked.len()];
            many.remove_many(&all_at(&asked), &values, &mut removed);
            assert!(singly.eq(removed.iter().copied()) && many == one_by_one);
            assert!(removed.contains(&true) && removed.contains(&false));
        }
    }
}

#[test]
fn a_full_maplet_stops_insert_many_where_it_stops_insert() {
    for mut one_by_one in of_each_form(500) {
        let mut many = one_by_one.clone();
        let hashes: Vec<_> = keys::hashes(1, 2000).collect();
        let expected = hashes.iter().try_for_each(|&hash| one_by_one.insert(&at(hash), 1));
        assert_eq!(many.insert_many(&all_at(&hashes), &[1; 2000]), expected);
        assert!(expected.is_err() && many == one_by_one);
    }
}

#[test]
fn relabelling_equals_replacing_every_pair() {
    for fixed in of_each_form(1000) {
        let value_bits = fixed.layout().value_bits();
        let growing = Maplet::builder(1000, 0.004, value_bits).grow_from(100).build().unwrap();
        for mut maplet in [fixed, growing] {
            let hashes: Vec<_> = keys::hashes(8, 1000).collect();
            let value = |hash: u64| hash & ((1 << value_bits) - 1) & 0x41;
            for &hash in &hashes {
                maplet.insert(&at(hash), value(hash)).unwrap();
            }
            let last = (1 << value_bits) - 1;
            for (old, new) in [(vec![0], last), (vec![1, 65], 0), (vec![], 1), (vec![last, 0], 1)] {
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
fn entries_lists_the_inserted_pairs() {
    for mut maplet in of_each_form(1000) {
        let addressing = Addressing::of(&maplet.to_bytes());
        keys::hashes(4, 1000).for_each(|h| maplet.insert(&at(h), value_of(&maplet, h)).unwrap());
        let mut found: Vec<_> = maplet
            .entries()
            .map(|entry| (addressing.entry_in(entry.bucket, entry.fingerprint), entry.value))
            .collect();
        let mut expected: Vec<_> =
            keys::hashes(4, 1000).map(|h| (addressing.entry(h), value_of(&maplet, h))).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
