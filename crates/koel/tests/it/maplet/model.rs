//! Random operations against the exact multiset of pairs of an entry and a value. A second
//! implementation of the addressing computes the entries.
//!
//! A maplet cannot distinguish keys with equal entries, so the model predicts every value that
//! `get` returns, wrong ones included.

use std::collections::BTreeMap;

use koel::{FullError, InsertError, Maplet, MapletView};
use proptest::prelude::*;
use testkit::addressing::{Addressing, Entry};
use testkit::image;
use testkit::keys::{at, hashes, sharing_entry, sharing_home, sharing_pair};

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, u64),
    /// One value for several keys, starting with this one.
    InsertRun(u8, u64, u8),
    Replace(u8, u64, u64),
    Remove(u8, u64),
    RemoveRun(u8, u64, u8),
    Reload,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, count) = (any::<u8>, 0_u8..100);
    // Few values, so that equal pairs are common.
    let value = || 0_u64..4;
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        4 => (key(), value(), count.clone()).prop_map(|(k, v, n)| Op::InsertRun(k, v, n)),
        4 => (key(), value(), value()).prop_map(|(key, old, new)| Op::Replace(key, old, new)),
        6 => (key(), value()).prop_map(|(key, value)| Op::Remove(key, value)),
        2 => (key(), value(), count).prop_map(|(k, v, n)| Op::RemoveRun(k, v, n)),
        1 => Just(Op::Reload),
        1 => Just(Op::Clear),
    ]
}

/// Segments, buckets of each, error rate, bits of a value.
type Setup = (u8, u32, f64, u32);

fn setup() -> impl Strategy<Value = Setup> {
    let rate = prop::sample::select(vec![0.1, 0.004, 1e-5, 1e-8]);
    let value_bits = prop::sample::select(vec![2, 5, 12, 21, 40]);
    (0_u8..3, 1_u32..12, rate, value_bits)
}

struct Run {
    maplet: Maplet,
    addressing: Addressing,
    keys: Vec<u64>,
    /// Low bits from a few values; the top bit shows whether wide values are truncated.
    top: u64,
    pairs: BTreeMap<(Entry, u64), u64>,
}

impl Run {
    fn new((segment_bits, buckets, rate, value_bits): Setup) -> Self {
        let small = Maplet::builder(1, rate, value_bits).build().unwrap();
        let bytes = image::reshape(&small.to_bytes(), segment_bits, buckets);
        let addressing = Addressing::of(&bytes);
        // A quarter each: equal entries, equal bucket pairs, equal home buckets, and random keys.
        let first = hashes(5, 1).next().unwrap();
        let same_entry = sharing_entry(&addressing, first).take(16);
        let same_pair = sharing_pair(&addressing, first).step_by(3).take(64);
        let same_home = sharing_home(&addressing, addressing.pair(first).0);
        let keys = same_entry.chain(same_pair).chain(same_home).chain(hashes(6, 256));
        Self {
            maplet: Maplet::from_bytes(&bytes).unwrap(),
            addressing,
            keys: keys.take(256).collect(),
            top: 1 << (value_bits - 1),
            pairs: BTreeMap::new(),
        }
    }

    fn key(&self, key: u8) -> u64 {
        self.keys[usize::from(key)]
    }

    /// One of four values: the two lowest, each with and without the top bit.
    fn value(&self, value: u64) -> u64 {
        value & 1 | if value & 2 == 0 { 0 } else { self.top }
    }

    fn insert(&mut self, key: u8, value: u64) {
        let (hash, value) = (self.key(key), self.value(value));
        let before = self.maplet.to_bytes();
        match self.maplet.insert(&at(hash), value) {
            Ok(()) => *self.pairs.entry((self.addressing.entry(hash), value)).or_default() += 1,
            Err(error) => {
                assert!(self.maplet.to_bytes() == before);
                self.assert_full(hash, error);
            }
        }
    }

    /// Checks that both buckets are full, and if the error says so, that all their entries have
    /// these buckets only.
    fn assert_full(&self, hash: u64, error: InsertError) {
        let (home, other) = self.addressing.pair(hash);
        let here: Vec<_> =
            self.maplet.entries().filter(|e| e.bucket == home || e.bucket == other).collect();
        let slots = if home == other { 4 } else { 8 };
        assert_eq!(here.len(), slots);
        let other_of = |bucket, fingerprint| {
            self.addressing.pair(self.addressing.hash_of(bucket, fingerprint)).1
        };
        let stay = here.iter().all(|entry| {
            let elsewhere = other_of(entry.bucket, entry.fingerprint);
            elsewhere == home || elsewhere == other
        });
        match error {
            InsertError::Full(FullError::Values { held }) => assert!(stay && held == slots as u64),
            InsertError::Full(FullError::Slots { .. }) => assert!(!stay),
            _ => panic!("{error}"),
        }
    }

    fn take(&mut self, entry: Entry, value: u64) -> bool {
        let Some(count) = self.pairs.get_mut(&(entry, value)) else { return false };
        *count -= 1;
        self.pairs.retain(|_, count| *count > 0);
        true
    }

    fn remove(&mut self, key: u8, value: u64) {
        let (hash, value) = (self.key(key), self.value(value));
        let expected = self.take(self.addressing.entry(hash), value);
        assert_eq!(self.maplet.remove(&at(hash), value), expected);
    }

    fn replace(&mut self, key: u8, old: u64, new: u64) {
        let (hash, old, new) = (self.key(key), self.value(old), self.value(new));
        let entry = self.addressing.entry(hash);
        let expected = self.take(entry, old);
        if expected {
            *self.pairs.entry((entry, new)).or_default() += 1;
        }
        assert_eq!(self.maplet.replace(&at(hash), old, new), Ok(expected));
    }

    fn step(&mut self, op: &Op) {
        let run = |key: u8, count: u8| (0..count).map(move |i| key.wrapping_add(i));
        match *op {
            Op::Insert(key, value) => self.insert(key, value),
            Op::InsertRun(key, value, count) => {
                run(key, count).for_each(|key| self.insert(key, value));
            }
            Op::Replace(key, old, new) => self.replace(key, old, new),
            Op::Remove(key, value) => self.remove(key, value),
            Op::RemoveRun(key, value, count) => {
                run(key, count).for_each(|key| self.remove(key, value));
            }
            Op::Reload => {
                let bytes = self.maplet.to_bytes();
                assert_eq!(MapletView::open(&bytes).unwrap().verify(), Ok(()));
                self.maplet = Maplet::from_bytes(&bytes).unwrap();
            }
            Op::Clear => {
                self.maplet.clear();
                self.pairs.clear();
            }
        }
    }

    /// Every key has exactly the values of its entry.
    fn check(&self) {
        assert_eq!(self.maplet.len(), self.pairs.values().sum::<u64>());
        let bytes = self.maplet.to_bytes();
        let view = MapletView::open(&bytes).unwrap();
        for &hash in &self.keys {
            let entry = self.addressing.entry(hash);
            let of_entry = self.pairs.range((entry, 0)..=(entry, u64::MAX));
            let expected: Vec<_> =
                of_entry.flat_map(|(&(_, value), &n)| (0..n).map(move |_| value)).collect();
            let mut found: Vec<_> = self.maplet.get(&at(hash)).collect();
            found.sort_unstable();
            assert_eq!(found, expected);
            assert!(view.get(&at(hash)).eq(self.maplet.get(&at(hash))));
            assert_eq!(self.maplet.contains(&at(hash)), !expected.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn after_any_operations_a_maplet_equals_the_multiset_of_its_pairs(
        setup in setup(),
        ops in prop::collection::vec(op(), 0..40),
    ) {
        let mut run = Run::new(setup);
        let empty = run.maplet.to_bytes();
        for op in &ops {
            run.step(op);
            run.check();
        }
        // Everything removed leaves nothing.
        for key in 0..=u8::MAX {
            (0..4).for_each(|value| (0..8).for_each(|_| run.remove(key, value)));
        }
        prop_assert!(run.maplet.to_bytes() == empty);
    }
}
