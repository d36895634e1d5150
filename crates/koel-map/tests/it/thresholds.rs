//! The load at which the first insert finds no room, compared with the theoretical thresholds. It
//! is never higher, and lower only by what a search limit of 4096 entries explains.

use koel_map::CuckooMap;
use testkit::keys;

use super::{Hashing, assert_sound};

/// The share of slots in use before the table grows for the first time.
fn load_before_growth<const HASHES: usize, const SLOTS: usize>(
    hashing: Hashing,
    slots: usize,
    keys: impl Iterator<Item = u64>,
) -> f64 {
    let mut map = CuckooMap::<u64, (), Hashing, HASHES, SLOTS>::with_hasher(hashing);
    // The capacity of a shape is at least this share of its slots.
    map.reserve(slots * 2 / 5);
    let room = map.slots();
    for key in keys {
        let load = map.load_factor();
        map.insert(key, ());
        if map.slots() != room {
            assert_sound(&map);
            return load;
        }
        assert_eq!(map.overflow_len(), 0);
    }
    unreachable!("more keys than slots");
}

/// A hasher, and keys for it.
type Pattern = (Hashing, Box<dyn Iterator<Item = u64>>);

/// Keys of honest programs: uniform, consecutive, far apart, or using only their high bits.
fn patterns(seed: u64) -> [Pattern; 5] {
    let row = seed << 33;
    [
        (Hashing::Uniform, Box::new(row..)),
        (Hashing::Identity, Box::new(keys::hashes(seed, u64::MAX))),
        (Hashing::Identity, Box::new(row..)),
        (Hashing::Identity, Box::new((seed..).map(|key| key * 65_536))),
        (Hashing::Identity, Box::new((seed..).map(|key| key << 40))),
    ]
}

/// Every size, seed and pattern.
fn loads<const HASHES: usize, const SLOTS: usize>() -> Vec<f64> {
    let sizes = [1 << 16, 1 << 18].into_iter();
    let runs = sizes.flat_map(|slots| (0..4).map(move |seed| (slots, patterns(seed))));
    let of = |(slots, patterns): (usize, [Pattern; 5])| {
        patterns.map(|(hashing, keys)| load_before_growth::<HASHES, SLOTS>(hashing, slots, keys))
    };
    runs.flat_map(of).collect()
}

/// With one slot and two choices, half of the slots on average. Single tables vary, because the
/// window narrows only with the cube root of their size.
#[test]
fn two_choices_of_one_slot_fail_near_a_half() {
    let loads = loads::<2, 1>();
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    assert!((0.49..0.52).contains(&mean), "{mean} on average: {loads:?}");
    assert!(loads.iter().all(|load| (0.42..0.56).contains(load)), "{loads:?}");
}

/// The probability that a Poisson variable with this mean is at least `least`.
fn at_least(mean: f64, least: usize) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for count in 0..least {
        below += term;
        term *= mean / (count + 1) as f64;
    }
    1.0 - below
}

/// The load up to which almost every set of keys can be placed, as the number of buckets goes to
/// infinity, by bisection. Source: N. Fountoulakis, M. Khosla, K. Panagiotou, The
/// Multiple-Orientability Thresholds for Random Hypergraphs (SODA 2011).
fn threshold(hashes: usize, slots: usize) -> f64 {
    let excess = |x: f64| x * at_least(x, slots) / at_least(x, slots + 1) - (hashes * slots) as f64;
    let (mut low, mut high) = (1e-4, 100.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    let others = i32::try_from(hashes - 1).expect("few hashes");
    low / (hashes as f64 * at_least(low, slots).powi(others)) / slots as f64
}

#[track_caller]
fn assert_loads<const HASHES: usize, const SLOTS: usize>(bounds: std::ops::Range<f64>) {
    let theory = threshold(HASHES, SLOTS);
    assert!(bounds.contains(&theory), "{HASHES} x {SLOTS}: {theory} in theory");
    let loads = loads::<HASHES, SLOTS>();
    let inside = loads.iter().all(|load| bounds.contains(load));
    assert!(inside, "{HASHES} x {SLOTS}, {bounds:?}: {loads:?}");
}

#[test]
fn more_choices_or_slots_fail_at_the_theoretical_thresholds() {
    assert_loads::<3, 1>(0.900..0.920);
    assert_loads::<4, 1>(0.963..0.979);
    assert_loads::<2, 2>(0.883..0.900);
    assert_loads::<2, 4>(0.973..0.982);
    assert_loads::<2, 8>(0.994..0.9982);
    assert_loads::<4, 2>(0.992..0.9984);
}

/// Checks the promise of `capacity`, which the overflow keeps where the slots cannot.
fn assert_capacity_is_kept<const HASHES: usize, const SLOTS: usize>() {
    for hashing in [Hashing::Uniform, Hashing::OneOf(40)] {
        for capacity in (0..300).chain([1000, 10_000]) {
            let mut map = CuckooMap::<_, _, _, HASHES, SLOTS>::with_hasher(hashing);
            map.reserve(capacity);
            let (slots, promised) = (map.slots(), map.capacity());
            assert!(promised >= capacity);
            assert!((0..promised as u64).all(|key| map.insert(key, key).is_none()));
            assert_eq!((map.slots(), map.len()), (slots, promised));
            assert_sound(&map);
        }
    }
}

#[test]
fn no_map_grows_below_its_capacity() {
    assert_capacity_is_kept::<2, 1>();
    assert_capacity_is_kept::<3, 1>();
    assert_capacity_is_kept::<2, 4>();
    assert_capacity_is_kept::<4, 2>();
}

#[test]
fn at_their_capacity_large_maps_never_overflow_and_small_ones_by_a_few_entries() {
    let overflow = |capacity: u64, seed: u64| {
        let mut map: CuckooMap<_, _, _> = CuckooMap::with_hasher(Hashing::Identity);
        map.reserve(usize::try_from(capacity).unwrap());
        map.extend(keys::hashes(seed, capacity).map(|key| (key, ())));
        map.overflow_len()
    };
    for seed in 0..100 {
        assert_eq!(overflow(2000, seed), 0);
        assert_eq!(overflow(20_000, seed), 0);
    }
    let small: Vec<_> = (0..2000).map(|seed| overflow(15, seed)).collect();
    let overflowing = small.iter().filter(|&&entries| entries > 0).count();
    assert!((60..260).contains(&overflowing), "{overflowing} of 2000 maps of 16 slots");
    assert!(small.iter().all(|&entries| entries <= 8));
}
