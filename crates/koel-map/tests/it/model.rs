//! Random operations against std's `HashMap`, in every shape and with hashers of every quality.

use std::collections::HashMap;

use koel_map::{CuckooMap, Entry};
use proptest::prelude::*;

use super::{Hashing, assert_sound};

/// Keys are below this.
const UNIVERSE: u64 = 80;

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64),
    InsertRun(u64, u64),
    Remove(u64),
    RemoveEntry(u64),
    GetMut(u64),
    OrInsert(u64, u64),
    AndModify(u64),
    Replace(u64, u64),
    RemoveByEntry(u64),
    Retain(u64, u64),
    Drain(usize),
    Shrink,
    Reserve(usize),
    Clear,
    Extend(Vec<(u64, u64)>),
    Clone,
    Rebuild,
    Double,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, value) = (0..UNIVERSE, any::<u64>());
    let entries = prop::collection::vec((key.clone(), value), 0..40);
    prop_oneof![
        8 => (key.clone(), value).prop_map(|(key, value)| Op::Insert(key, value)),
        4 => (key.clone(), 0_u64..40).prop_map(|(key, count)| Op::InsertRun(key, count)),
        6 => key.clone().prop_map(Op::Remove),
        2 => key.clone().prop_map(Op::RemoveEntry),
        1 => key.clone().prop_map(Op::GetMut),
        2 => (key.clone(), value).prop_map(|(key, value)| Op::OrInsert(key, value)),
        1 => key.clone().prop_map(Op::AndModify),
        1 => (key.clone(), value).prop_map(|(key, value)| Op::Replace(key, value)),
        2 => key.prop_map(Op::RemoveByEntry),
        2 => (1_u64..4, 0_u64..4).prop_map(|(modulus, rest)| Op::Retain(modulus, rest)),
        1 => (0_usize..20).prop_map(Op::Drain),
        3 => Just(Op::Shrink),
        1 => (0_usize..100).prop_map(Op::Reserve),
        1 => Just(Op::Clear),
        2 => entries.prop_map(Op::Extend),
        1 => Just(Op::Clone),
        1 => Just(Op::Rebuild),
        1 => Just(Op::Double),
    ]
}

fn hashing() -> impl Strategy<Value = Hashing> {
    prop::sample::select(vec![
        Hashing::Uniform,
        Hashing::Identity,
        Hashing::OneOf(20),
        Hashing::OneOf(3),
        Hashing::OneOf(1),
    ])
}

type Map<const HASHES: usize, const SLOTS: usize> = CuckooMap<u64, u64, Hashing, HASHES, SLOTS>;

/// Both maps, side by side.
struct Pair<const HASHES: usize, const SLOTS: usize> {
    map: Map<HASHES, SLOTS>,
    model: HashMap<u64, u64>,
}

impl<const HASHES: usize, const SLOTS: usize> Pair<HASHES, SLOTS> {
    fn run(hashing: Hashing, ops: &[Op]) {
        let mut pair = Self { map: CuckooMap::with_hasher(hashing), model: HashMap::new() };
        for op in ops {
            let (capacity, len) = (pair.map.capacity(), pair.map.len());
            pair.apply(op);
            pair.check();
            if matches!(op, Op::Insert(..) | Op::OrInsert(..)) && len < capacity {
                assert_eq!(pair.map.capacity(), capacity, "below its capacity a map does not grow");
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        let Self { map, model } = self;
        match *op {
            Op::Insert(key, value) => assert_eq!(map.insert(key, value), model.insert(key, value)),
            Op::InsertRun(first, count) => {
                for key in (first..first + count).map(|key| key % UNIVERSE) {
                    assert_eq!(map.insert(key, count), model.insert(key, count));
                }
            }
            Op::Remove(key) => assert_eq!(map.remove(&key), model.remove(&key)),
            Op::RemoveEntry(key) => assert_eq!(map.remove_entry(&key), model.remove_entry(&key)),
            Op::GetMut(key) => {
                assert_eq!(map.get_mut(&key).map(increment), model.get_mut(&key).map(increment));
            }
            Op::Retain(modulus, rest) => {
                let keep = |key: &u64, value: &mut u64| {
                    increment(value);
                    key % modulus == rest
                };
                map.retain(keep);
                model.retain(keep);
            }
            Op::Shrink => {
                map.shrink_to_fit();
                assert!(map.capacity() <= map.len() * 2 + 2 * SLOTS);
            }
            Op::Reserve(additional) => {
                map.reserve(additional);
                assert!(map.capacity() >= map.len() + additional);
            }
            Op::Extend(ref entries) => {
                map.extend(entries.iter().copied());
                model.extend(entries.iter().copied());
            }
            _ => self.apply_entry(op),
        }
    }

    fn apply_entry(&mut self, op: &Op) {
        let Self { map, model } = self;
        match *op {
            Op::OrInsert(key, value) => {
                assert_eq!(map.entry(key).key(), &key);
                let (ours, theirs) = (map.entry(key), model.entry(key));
                assert_eq!(increment(ours.or_insert(value)), increment(theirs.or_insert(value)));
            }
            Op::AndModify(key) => {
                let change = |value: &mut u64| *value = value.wrapping_mul(3);
                let ours = *map.entry(key).and_modify(change).or_default();
                assert_eq!(ours, *model.entry(key).and_modify(change).or_default());
            }
            Op::Replace(key, value) => match map.entry(key) {
                Entry::Occupied(mut entry) => {
                    assert_eq!(Some(entry.insert(value)), model.insert(key, value));
                    assert_eq!((entry.key(), entry.get()), (&key, &value));
                }
                Entry::Vacant(entry) => {
                    assert!(!model.contains_key(&key));
                    assert_eq!(entry.into_key(), key);
                }
            },
            Op::RemoveByEntry(key) => match map.entry(key) {
                Entry::Occupied(entry) => {
                    assert_eq!(Some(entry.remove_entry()), model.remove_entry(&key));
                }
                Entry::Vacant(entry) => assert_eq!(Some(entry.key()), Some(&key)),
            },
            _ => self.apply_to_all(op),
        }
    }

    fn apply_to_all(&mut self, op: &Op) {
        let Self { map, model } = self;
        match *op {
            Op::Drain(taken) => {
                let slots = map.slots();
                for (key, value) in map.drain().take(taken) {
                    assert_eq!(model.remove(&key), Some(value));
                }
                assert_eq!((map.len(), map.slots()), (0, slots));
                model.clear();
            }
            Op::Clear => {
                map.clear();
                model.clear();
            }
            Op::Clone => {
                let copy = map.clone();
                assert_eq!(*map, copy);
                let sorted = |mut all: Vec<u64>| {
                    all.sort_unstable();
                    all
                };
                let keys = sorted(copy.clone().into_keys().collect());
                assert_eq!(keys, sorted(model.keys().copied().collect()));
                let values = sorted(copy.clone().into_values().collect());
                assert_eq!(values, sorted(model.values().copied().collect()));
                *map = CuckooMap::with_hasher(*map.hasher());
                map.extend(&copy);
            }
            Op::Rebuild => {
                let hashing = *map.hasher();
                let old = std::mem::replace(map, CuckooMap::with_hasher(hashing));
                let entries = old.into_iter();
                assert_eq!(entries.len(), model.len());
                map.extend(entries);
            }
            Op::Double => {
                map.values_mut().for_each(|value| *value = value.wrapping_mul(2));
                model.values_mut().for_each(|value| *value = value.wrapping_mul(2));
            }
            _ => unreachable!("{op:?} is applied above"),
        }
    }

    fn check(&self) {
        let Self { map, model } = self;
        assert_sound(map);
        assert_eq!(map.len(), model.len());
        for key in 0..UNIVERSE {
            assert_eq!(map.get(&key), model.get(&key));
            assert_eq!(map.contains_key(&key), model.contains_key(&key));
        }
        assert!(map.keys().all(|key| model.contains_key(key)));
        assert_eq!(map.values().len(), model.len());
    }
}

/// Adds 1 and returns the new value.
fn increment(value: &mut u64) -> u64 {
    *value = value.wrapping_add(1);
    *value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn after_any_operations_a_map_equals_the_one_of_std(
        hashing in hashing(),
        ops in prop::collection::vec(op(), 0..60),
    ) {
        Pair::<2, 4>::run(hashing, &ops);
        Pair::<2, 1>::run(hashing, &ops);
        Pair::<3, 1>::run(hashing, &ops);
        Pair::<4, 1>::run(hashing, &ops);
        Pair::<2, 2>::run(hashing, &ops);
        Pair::<2, 8>::run(hashing, &ops);
        Pair::<4, 2>::run(hashing, &ops);
        Pair::<8, 8>::run(hashing, &ops);
    }

    #[test]
    fn maps_are_equal_when_their_entries_are(
        ours in prop::collection::hash_map(0_u64..6, 0_u64..2, 0..6),
        theirs in prop::collection::hash_map(0_u64..6, 0_u64..2, 0..6),
    ) {
        let map = |model: &HashMap<u64, u64>| -> CuckooMap<u64, u64> {
            model.iter().map(|(&key, &value)| (key, value)).collect()
        };
        // Each map has its own hash key and so its own order.
        prop_assert_eq!(map(&ours) == map(&theirs), ours == theirs);
        prop_assert_eq!(map(&ours).clone(), map(&ours));
    }
}

#[test]
fn keys_are_looked_up_in_borrowed_form_and_the_first_one_stays() {
    let mut map: CuckooMap<String, u32> = CuckooMap::new();
    assert_eq!((map.slots(), map.capacity(), map.get("ada")), (0, 0, None));
    assert_eq!(map.insert("ada".into(), 1), None);
    let first = map.get_key_value("ada").unwrap().0.as_ptr();
    assert_eq!(map.insert("ada".into(), 2), Some(1));
    assert_eq!(map.get_key_value("ada").unwrap().0.as_ptr(), first);
    assert_eq!(map["ada"], 2);
    assert_eq!(format!("{map:?}"), r#"{"ada": 2}"#);
    assert_eq!(format!("{:?}", map.entry("ada".into())), r#"OccupiedEntry("ada", 2)"#);
    assert_eq!(format!("{:?}", map.entry("bo".into())), r#"VacantEntry("bo")"#);
}

#[test]
fn a_map_that_is_shrunk_when_empty_holds_no_slot() {
    let mut map: CuckooMap<u64, ()> = CuckooMap::with_capacity(1000);
    assert!((1000..1100).contains(&map.slots()));
    map.shrink_to_fit();
    assert_eq!((map.slots(), map.capacity(), map.load_factor()), (0, 0, 0.0));
}
