//! Hostile uses of a map: keys that all collide, panics in `Hash`, `Eq`, `Drop` and closures, and
//! leaked iterators.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use koel_map::{CuckooMap, SipState};

use super::{Hashing, assert_sound};

#[test]
fn a_thousand_keys_with_one_hash_are_kept_in_bounded_memory() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::OneOf(1));
    for key in 0..1000_u64 {
        assert_eq!(map.insert(key, key), None);
        assert!(map.slots() <= map.len() * 11 / 5 + 8, "{} slots for {key}", map.slots());
    }
    // One hash has only two buckets of four slots.
    assert!((992..=996).contains(&map.overflow_len()));
    assert_sound(&map);
    assert!((0..1000).all(|key| map.insert(key, key + 1) == Some(key)));
    map.retain(|key, _| key % 2 == 0);
    assert_eq!(map.len(), 500);
    assert_sound(&map);
    map.shrink_to_fit();
    assert!(map.slots() < 540);
    assert!((0..1000).all(|key| map.remove(&key) == (key % 2 == 0).then_some(key + 1)));
    assert_eq!((map.len(), map.overflow_len()), (0, 0));
}

#[test]
fn overflowed_entries_return_when_removals_make_room() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::OneOf(1));
    map.extend((0..100_u64).map(|key| (key, key)));
    let room = map.len() - map.overflow_len();
    for key in 0..50 {
        assert_eq!(map.remove(&key), Some(key));
        assert_eq!(map.overflow_len(), map.len() - room);
    }
    map.retain(|&key, _| key < 50 + room as u64);
    assert_eq!((map.len(), map.overflow_len()), (room, 0));
    assert_sound(&map);
    // A small map at its capacity sometimes overflows. A half-full one never does, whatever its
    // history.
    for seed in 0..100 {
        let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Uniform);
        map.reserve(150);
        let (first, count) = (seed << 32, map.capacity() as u64);
        map.extend((first..first + count).map(|key| (key, ())));
        for key in first..first + 5 * count {
            assert_eq!((map.remove(&key), map.insert(key + count, ())), (Some(()), None));
        }
        map.retain(|key, ()| key % 2 == 0);
        assert_eq!(map.overflow_len(), 0, "seed {seed}");
        assert_sound(&map);
    }
}

#[test]
fn colliding_keys_do_not_block_others() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Identity);
    (0..20_000_u64).for_each(|key| assert_eq!(map.insert(key, key), None));
    let alone = map.slots();
    let mut mixed: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::OneOf(20_000));
    (0..20_000_u64).for_each(|key| assert_eq!(mixed.insert(key, key), None));
    (1..=100).for_each(|i| assert_eq!(mixed.insert(i * 20_000, i), None));
    assert!(mixed.overflow_len() <= 100);
    assert!(mixed.slots() <= alone * 2);
    assert_sound(&mixed);
}

/// A map lists its entries in the order of their buckets. A map filled in this order overflows no
/// more than any other.
#[test]
fn a_map_filled_in_the_order_of_another_overflows_no_more() {
    for count in [4000, 7500, 50_000] {
        // With random keys, one run in twenty leaves three entries in the overflow of a table of
        // about 28.
        let hasher = SipState::with_key(*b"in another order");
        let mut one: CuckooMap<u64, u64> = CuckooMap::with_hasher(hasher);
        (0..count).for_each(|key| assert_eq!(one.insert(key, key), None));
        let mut all: CuckooMap<_, _, _> = CuckooMap::with_hasher(one.hasher().clone());
        let mut some = all.clone();
        for (i, (&key, &value)) in one.iter().enumerate() {
            assert_eq!(all.insert(key, value), None);
            assert!(all.overflow_len() <= 2, "{} of {i}", all.overflow_len());
        }
        for (&key, &value) in one.iter().take(3800) {
            assert_eq!(some.insert(key, value), None);
        }
        assert!(some.overflow_len() <= 2, "{}", some.overflow_len());
        assert!(all == one);
        assert_sound(&all);
    }
}

thread_local! {
    /// Calls of `Hash` and `Eq` until one panics.
    static FUSE: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Comparisons of keys so far.
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

fn burn() {
    let left = FUSE.get();
    assert!(left > 0, "the fuse has burnt");
    FUSE.set(left - 1);
}

/// A key that counts and may panic.
#[derive(Clone, Debug)]
struct Fused(u64);

impl Hash for Fused {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        state.write_u64(self.0);
    }
}

impl PartialEq for Fused {
    fn eq(&self, other: &Self) -> bool {
        burn();
        COMPARED.set(COMPARED.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Fused {}

type FusedMap<const HASHES: usize, const SLOTS: usize> =
    CuckooMap<Fused, u64, Hashing, HASHES, SLOTS>;

fn contents<const HASHES: usize, const SLOTS: usize>(
    map: &FusedMap<HASHES, SLOTS>,
) -> Vec<(u64, u64)> {
    let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.0, *value)).collect();
    entries.sort_unstable();
    entries
}

/// Tries `change` with longer and longer fuses until it completes. A map whose change panicked is
/// unchanged.
fn assert_all_or_nothing<const HASHES: usize, const SLOTS: usize>(
    map: &mut FusedMap<HASHES, SLOTS>,
    change: impl Fn(&mut FusedMap<HASHES, SLOTS>),
) {
    let before = contents(map);
    for fuse in 0.. {
        FUSE.set(fuse);
        let done = catch_unwind(AssertUnwindSafe(|| change(map)));
        FUSE.set(u64::MAX);
        if done.is_ok() {
            break;
        }
        assert!(contents(map) == before);
        assert!(before.iter().all(|&(key, value)| map.get(&Fused(key)) == Some(&value)));
    }
}

fn assert_panics_lose_nothing<const HASHES: usize, const SLOTS: usize>(hashing: Hashing) {
    let mut map = FusedMap::<HASHES, SLOTS>::with_hasher(hashing);
    for key in 0..60 {
        assert_all_or_nothing(&mut map, |map| assert_eq!(map.insert(Fused(key), key), None));
        assert_all_or_nothing(&mut map, |map| *map.entry(Fused(key)).or_default() = key);
        assert_all_or_nothing(&mut map, |map| map.reserve(0));
    }
    assert_all_or_nothing(&mut map, CuckooMap::shrink_to_fit);
    for key in (0..60).step_by(3) {
        assert_all_or_nothing(&mut map, |map| assert_eq!(map.remove(&Fused(key)), Some(key)));
    }
    let left: Vec<_> = (0..60).filter(|key| key % 3 != 0).map(|key| (key, key)).collect();
    assert_eq!(contents(&map), left);
}

#[test]
fn a_panic_in_hash_or_eq_loses_and_doubles_nothing() {
    for hashing in [Hashing::Uniform, Hashing::OneOf(5), Hashing::OneOf(1)] {
        assert_panics_lose_nothing::<2, 4>(hashing);
        assert_panics_lose_nothing::<2, 1>(hashing);
        assert_panics_lose_nothing::<4, 2>(hashing);
    }
}

#[test]
fn a_failed_allocation_panics_and_changes_nothing() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Uniform);
    map.insert(7_u64, [7; 1 << 16]);
    // Nearly the largest number of slots, and more bytes than a process can address.
    let stopped = catch_unwind(AssertUnwindSafe(|| map.reserve(1 << 32)));
    assert!(stopped.is_err());
    assert_eq!((map.len(), map.get(&7)), (1, Some(&[7_u8; 1 << 16])));
}

#[test]
fn fallible_methods_report_failed_allocations() {
    // Too many bytes, too many buckets, and a number of bytes that overflows.
    for entries in [1 << 33, 1 << 40, usize::MAX] {
        let refused = CuckooMap::<u64, [u8; 1 << 16]>::try_with_capacity(entries).unwrap_err();
        assert_eq!(refused.entries, entries);
        let mut map = CuckooMap::new();
        assert_eq!(map.try_insert(7_u64, [7_u8; 1 << 16]), Ok(None));
        let needed = entries.saturating_add(1);
        assert_eq!(map.try_reserve(entries).unwrap_err().entries, needed);
        let slots = map.slots();
        let endless = (0..entries as u64).map(|key| (key, [0; 1 << 16]));
        let refused = map.try_extend(endless).unwrap_err();
        let sentence = format!(
            "no memory for a map of {} entries; remove entries, or use several smaller maps",
            refused.entries
        );
        assert_eq!(refused.to_string(), sentence);
        assert_eq!((map.len(), map.slots(), map[&7][0]), (1, slots, 7));
        assert!(map.try_clone().unwrap() == map);
    }
}

#[test]
fn fallible_methods_equal_those_that_panic() {
    for hashing in [Hashing::Uniform, Hashing::OneOf(3), Hashing::OneOf(1)] {
        let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(hashing);
        for key in 0..500_u64 {
            assert_eq!(map.try_insert(key, key), Ok(None));
            assert_eq!(map.try_insert(key, !key), Ok(Some(key)));
        }
        let mut other: CuckooMap<_, _, _> =
            CuckooMap::try_with_capacity_and_hasher(500, hashing).unwrap();
        assert!(other.capacity() >= 500);
        other.try_extend((0..500_u64).map(|key| (key, !key))).unwrap();
        other.try_reserve(500).unwrap();
        assert!(other.capacity() >= 1000);
        let copy = map.try_clone().unwrap();
        assert!(copy == other && copy.overflow_len() == map.overflow_len());
        assert_sound(&copy);
    }
}

#[test]
fn a_lookup_compares_the_key_it_finds_and_no_other() {
    let mut map = FusedMap::<2, 4>::with_hasher(Hashing::Uniform);
    map.reserve(100_000);
    (0..100_000).for_each(|key| assert_eq!(map.insert(Fused(key), key), None));
    COMPARED.set(0);
    assert!((0..100_000).all(|key| map.contains_key(&Fused(key))));
    assert_eq!(COMPARED.get(), 100_000);
    assert!((100_000..200_000).all(|key| !map.contains_key(&Fused(key))));
    assert_eq!(COMPARED.get(), 100_000);
}

#[test]
fn a_closure_that_panics_leaves_the_entries_that_were_not_removed() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::OneOf(7));
    map.extend((0..100_u64).map(|key| (key, key)));
    let mut asked = 0;
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        map.retain(|_, _| {
            asked += 1;
            assert!(asked <= 60);
            asked % 2 == 0
        });
    }));
    assert!(stopped.is_err());
    assert_eq!(map.len(), 70);
    assert_sound(&map);
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        map.entry(1000).or_insert_with(|| unreachable!("a default that panics"));
    }));
    assert!(stopped.is_err() && !map.contains_key(&1000));
    assert_eq!(map.len(), 70);
}

/// A value that panics when it is dropped if it holds `true`.
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0, "the bomb goes off");
    }
}

#[test]
fn a_value_that_panics_when_dropped_leaves_an_empty_map() {
    for drained in [false, true] {
        let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Uniform);
        map.extend((0..100_u64).map(|key| (key, Bomb(key == 50))));
        let stopped =
            catch_unwind(AssertUnwindSafe(
                || {
                    if drained { drop(map.drain()) } else { map.clear() }
                },
            ));
        assert!(stopped.is_err() && map.is_empty());
        assert_eq!(map.iter().count(), 0);
        map.extend((0..100_u64).map(|key| (key, Bomb(false))));
        assert_eq!(map.len(), 100);
        assert_sound(&map);
    }
}

#[test]
fn a_drained_map_keeps_its_memory() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Uniform);
    let entries: Vec<_> = (0..100_u64).map(|key| (key, !key)).collect();
    map.extend(entries.iter().map(|(key, value)| (key, value)));
    assert_eq!((map.len(), map.get(&7)), (100, Some(&!7)));
    let (slots, capacity) = (map.slots(), map.capacity());
    assert!(slots >= capacity && capacity >= 100);
    for taken in [0, 1, 100] {
        assert_eq!(map.drain().take(taken).count(), taken.min(100));
        assert_eq!((map.len(), map.slots(), map.capacity()), (0, slots, capacity));
        map.extend(entries.iter().copied());
    }
    assert_sound(&map);
}

#[test]
fn a_leaked_drain_leaves_an_empty_map() {
    let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Uniform);
    map.extend((0..100_u64).map(|key| (key, key)));
    let mut drain = map.drain();
    assert_eq!((drain.next().is_some(), drain.len()), (true, 99));
    std::mem::forget(drain);
    assert_eq!((map.len(), map.iter().count()), (0, 0));
    map.extend((0..100_u64).map(|key| (key, key)));
    assert_sound(&map);
}
