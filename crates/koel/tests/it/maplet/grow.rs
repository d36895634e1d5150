//! Growing maplets: every pair stays, wrong values are as rare as promised, and the bytes
//! round-trip.

use koel::{FullError, InsertError, Maplet, MapletView, Values};
use testkit::keys::{all_at, at};
use testkit::{image, keys};

/// Maplets of narrow slots, of wide ones, and of slots of 64 bits, that grow from a few entries.
fn growing() -> impl Iterator<Item = Maplet> {
    let ways = [(0.02, 3), (0.001, 5), (0.000_1, 20), (0.000_01, 38)];
    ways.into_iter()
        .map(|(rate, bits)| Maplet::builder(1_000_000, rate, bits).grow_from(100).build().unwrap())
}

fn value(maplet: &Maplet, number: u64) -> u64 {
    keys::splitmix64(number) & !(u64::MAX << maplet.layout().value_bits())
}

fn fill(maplet: &mut Maplet, count: u64) -> (Vec<u64>, Vec<u64>) {
    let hashes: Vec<u64> = keys::hashes(1, count).collect();
    let values: Vec<u64> = (0..count).map(|number| value(maplet, number)).collect();
    maplet.insert_many(&all_at(&hashes), &values).unwrap();
    (hashes, values)
}

#[test]
fn every_pair_stays_and_wrong_values_are_as_rare_as_promised() {
    for mut maplet in growing() {
        let (hashes, values) = fill(&mut maplet, 150_000);
        assert_eq!(maplet.len(), 150_000);
        assert!(maplet.load_factor() > 0.86, "{maplet:?}");
        for (&hash, &value) in hashes.iter().zip(&values) {
            assert!(maplet.get(&at(hash)).any(|found| found == value), "{maplet:?}");
        }
        let absent: Vec<u64> = keys::hashes(2, 1_000_000).collect();
        let mut values = vec![Values::default(); absent.len()];
        maplet.get_many(&all_at(&absent), &mut values);
        let wrong: usize = values.into_iter().map(Iterator::count).sum();
        let one_by_one: usize = absent.iter().map(|&hash| maplet.get(&at(hash)).count()).sum();
        assert_eq!(one_by_one, wrong);
        let (wrong, mean) = (wrong as f64, 1e6 * maplet.false_candidates());
        assert!((wrong - mean).abs() < 6.0 * mean.sqrt() + 6.0, "{maplet:?}: {wrong}, not {mean}");
        assert!(maplet.false_candidates() <= maplet.requested_false_positive_rate());
    }
}

/// See `filters_of_several_segments_grow_no_faster_than_their_keys` in `grow.rs`.
#[test]
fn a_maplet_of_several_segments_grows_no_faster_than_its_pairs() {
    const FIRST: u64 = 400_000;
    let mut maplet = Maplet::builder(10 * FIRST, 0.001, 38).grow_from(FIRST).build().unwrap();
    let segments = maplet.to_bytes()[18];
    assert!(segments > 0, "{maplet:?}");
    for (i, hash) in (0..).zip(keys::hashes(1, 5 * FIRST / 2)) {
        maplet.insert(&at(hash), i).unwrap();
        if i > FIRST && i % (FIRST / 20) == 0 {
            assert!(maplet.load_factor() > 0.86, "{maplet:?}");
        }
    }
    for (i, hash) in (0..).zip(keys::hashes(1, 5 * FIRST / 2)) {
        assert!(maplet.get(&at(hash)).any(|value| value == i), "{maplet:?}");
    }
    assert_eq!(maplet.verify(), Ok(()));
}

#[test]
fn replacing_values_and_removing_pairs_changes_no_other_pair() {
    for mut maplet in growing() {
        let (hashes, values) = fill(&mut maplet, 40_000);
        let new = |number: usize| value(&maplet, 1 << 40 | number as u64);
        let new: Vec<u64> = (0..40_000).map(new).collect();
        let changes: Vec<(u64, u64)> = values.iter().copied().zip(new.iter().copied()).collect();
        let mut replaced = [false; 20_000];
        maplet.replace_many(&all_at(&hashes[..20_000]), &changes[..20_000], &mut replaced).unwrap();
        assert!(replaced.iter().all(|&replaced| replaced));
        for i in (0..40_000).step_by(2) {
            let now = if i < 20_000 { new[i] } else { values[i] };
            assert!(maplet.remove(&at(hashes[i]), now), "{maplet:?}");
        }
        for i in (1..40_000).step_by(2) {
            let now = if i < 20_000 { new[i] } else { values[i] };
            assert!(maplet.get(&at(hashes[i])).any(|found| found == now), "{maplet:?}");
        }
        assert_eq!(maplet.len(), 20_000);
        maplet.verify().unwrap();
        for i in (1..40_000).step_by(2) {
            let now = if i < 20_000 { new[i] } else { values[i] };
            assert!(maplet.remove(&at(hashes[i]), now), "{maplet:?}");
        }
        assert!(maplet.is_empty());
    }
}

#[test]
fn shrinking_returns_room_and_loses_no_pair() {
    for mut maplet in growing() {
        let (hashes, values) = fill(&mut maplet, 80_000);
        let grown = maplet.slots();
        for i in (0..80_000).filter(|i| i % 8 > 0) {
            assert!(maplet.remove(&at(hashes[i]), values[i]), "{maplet:?}");
        }
        maplet.shrink_to_fit();
        assert!(maplet.slots() < grown / 7, "{grown} {maplet:?}");
        maplet.verify().unwrap();
        assert!(Maplet::from_bytes(&maplet.to_bytes()).unwrap() == maplet);
        assert!(maplet.false_candidates() <= maplet.requested_false_positive_rate());
        for i in (0..80_000).step_by(8) {
            assert!(maplet.get(&at(hashes[i])).any(|found| found == values[i]), "{maplet:?}");
        }
        let smallest = maplet.clone();
        maplet.shrink_to_fit();
        assert!(maplet == smallest);
        // It grows again, and every pair can be taken out.
        for i in (0..80_000).filter(|i| i % 8 > 0) {
            maplet.insert(&at(hashes[i]), values[i]).unwrap();
        }
        assert!((0..80_000).all(|i| maplet.remove(&at(hashes[i]), values[i])), "{maplet:?}");
        assert!(maplet.is_empty());
    }
}

/// Entries without stored bits have halves in many buckets. In a table that is too small they would
/// share two buckets, so such maplets once failed to shrink.
#[test]
fn the_oldest_entries_are_moved_to_a_smaller_table_too() {
    for bits in [3, 20, 38] {
        // Starts with 100 buckets and is built for a tenth of the keys, so the oldest entries have
        // lost all stored bits.
        let built = Maplet::builder(8000, 0.02, bits).grow_from(1).build().unwrap();
        let mut maplet = Maplet::from_bytes(&image::reshape(&built.to_bytes(), 0, 100)).unwrap();
        let (old, values) = fill(&mut maplet, 300);
        let others: Vec<u64> = keys::hashes(2, 80_000).collect();
        maplet.insert_many(&all_at(&others), &vec![0; others.len()]).unwrap();
        let grown = maplet.slots();
        assert!(others.iter().all(|&hash| maplet.remove(&at(hash), 0)), "{maplet:?}");
        maplet.shrink_to_fit();
        assert!(maplet.slots() < grown * 2 / 3, "{grown} {maplet:?}");
        maplet.verify().unwrap();
        let mut pairs = old.iter().zip(values);
        assert!(pairs.all(|(&hash, value)| maplet.remove(&at(hash), value)), "{maplet:?}");
        assert!(maplet.is_empty());
    }
}

#[test]
fn single_and_batched_calls_make_equal_bytes_which_are_read_back() {
    for mut many in growing() {
        let mut one = many.clone();
        let (hashes, values) = fill(&mut many, 5000);
        for (&hash, &value) in hashes.iter().zip(&values) {
            one.insert(&at(hash), value).unwrap();
        }
        let bytes = many.to_bytes();
        assert!(one == many && one.to_bytes() == bytes);
        let mut read = Maplet::from_bytes(&bytes).unwrap();
        assert!(read == many);
        let view = MapletView::open(&bytes).unwrap();
        view.verify().unwrap();
        assert!(
            hashes.iter().zip(&values).all(|(&hash, &it)| view.get(&at(hash)).any(|v| v == it))
        );
        assert_eq!(view.entries().count(), read.entries().count());
        read.insert(&at(keys::splitmix64(5)), 1).unwrap();
        for offset in [24, 32, 40, 80, 88] {
            let mut forged = bytes.clone();
            forged[offset] ^= 1;
            testkit::image::reseal(&mut forged);
            assert!(Maplet::from_bytes(&forged).is_err(), "byte {offset}");
        }
    }
}

#[test]
fn the_ninth_value_of_a_key_is_refused_without_growth() {
    for mut maplet in growing() {
        fill(&mut maplet, 10_000);
        let (mut held, hash) = (0, keys::splitmix64(77));
        let refused = (0..20).find_map(|_| {
            let before = maplet.to_bytes();
            let refused = maplet.insert(&at(hash), 1).err();
            held += usize::from(refused.is_none());
            refused.inspect(|full| assert!(maplet.to_bytes() == before, "{full:?} {maplet:?}"))
        });
        let full = InsertError::Full(FullError::Values { held: 8 });
        assert_eq!(refused, Some(full));
        assert!(held >= 6 && maplet.get(&at(hash)).count() == held, "{held} {maplet:?}");
    }
}
