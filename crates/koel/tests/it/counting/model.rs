//! Random operations against exact counts by entry, which a second implementation of the addressing
//! computes. Counts have few bits, so that most exceed their slots.

use std::collections::BTreeMap;

use koel::{CountingFilter, CountingView, FullError, Merge, MergeError};
use proptest::prelude::*;
use testkit::addressing::{Addressing, Entry};
use testkit::image;
use testkit::keys::{at, hashes, sharing_entry, sharing_home, sharing_pair};

#[derive(Clone, Debug)]
enum Op {
    Insert(u8),
    Add(u8, u64),
    /// Several keys, starting with this one.
    InsertRun(u8, u8),
    Remove(u8),
    RemoveRun(u8, u8),
    /// Merges a filter of several keys, starting with this one, each inserted so often.
    Merge(u8, u8, u64, bool),
    Reload,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, count) = (any::<u8>, 0_u8..100);
    let times = prop_oneof![0_u64..10, Just(u64::MAX), Just(1 << 39), Just(u64::MAX / 2)];
    prop_oneof![
        6 => key().prop_map(Op::Insert),
        4 => (key(), times.clone()).prop_map(|(key, times)| Op::Add(key, times)),
        4 => (key(), count.clone()).prop_map(|(key, count)| Op::InsertRun(key, count)),
        6 => key().prop_map(Op::Remove),
        2 => (key(), count.clone()).prop_map(|(key, count)| Op::RemoveRun(key, count)),
        2 => (key(), count, times, any::<bool>())
            .prop_map(|(key, count, times, max)| Op::Merge(key, count, times, max)),
        1 => Just(Op::Reload),
        1 => Just(Op::Clear),
    ]
}

/// Segments, buckets of each, error rate, bits of a count.
type Setup = (u8, u32, f64, u32);

fn setup() -> impl Strategy<Value = Setup> {
    let rate = prop::sample::select(vec![0.1, 0.004, 1e-5, 1e-8]);
    (0_u8..3, 1_u32..12, rate, prop::sample::select(vec![1, 2, 5, 40]))
}

struct Run {
    filter: CountingFilter,
    /// Bytes of an empty filter of one bucket.
    empty: Vec<u8>,
    /// Segments, and buckets of each.
    shape: (u8, u32),
    addressing: Addressing,
    keys: Vec<u64>,
    counts: BTreeMap<Entry, u64>,
}

impl Run {
    fn new((segment_bits, buckets, rate, count_bits): Setup) -> Self {
        let small = CountingFilter::builder(1, rate).count_bits(count_bits).build().unwrap();
        let bytes = image::reshape(&small.to_bytes(), segment_bits, buckets);
        let addressing = Addressing::of(&bytes);
        // A quarter each: equal entries, equal bucket pairs, equal home buckets, and random keys.
        let first = hashes(5, 1).next().unwrap();
        let same_entry = sharing_entry(&addressing, first).take(16);
        let same_pair = sharing_pair(&addressing, first).step_by(3).take(64);
        let same_home = sharing_home(&addressing, addressing.pair(first).0);
        let keys = same_entry.chain(same_pair).chain(same_home).chain(hashes(6, 256));
        Self {
            filter: CountingFilter::from_bytes(&bytes).unwrap(),
            empty: small.to_bytes(),
            shape: (segment_bits, buckets),
            addressing,
            keys: keys.take(256).collect(),
            counts: BTreeMap::new(),
        }
    }

    fn len(&self) -> u64 {
        self.counts.values().sum()
    }

    fn add(&mut self, key: u8, times: u64) {
        let hash = self.keys[usize::from(key)];
        let entry = self.addressing.entry(hash);
        let before = self.filter.to_bytes();
        let known = self.counts.get(&entry).copied().unwrap_or(0);
        match self.filter.add(&at(hash), times) {
            Ok(count) => {
                assert_eq!(count, known + times);
                if count > 0 {
                    self.counts.insert(entry, count);
                }
            }
            Err(full) => {
                assert!(self.filter.to_bytes() == before);
                let overflows = self.len().checked_add(times).is_none();
                assert_eq!(full == FullError::Overflow, overflows);
                // A key that is present needs no room.
                assert!(overflows || known == 0, "{full}");
            }
        }
    }

    fn remove(&mut self, key: u8) {
        let hash = self.keys[usize::from(key)];
        let entry = self.addressing.entry(hash);
        assert_eq!(self.filter.remove(&at(hash)), self.counts.contains_key(&entry));
        self.counts.entry(entry).and_modify(|count| *count -= 1);
        self.counts.retain(|_, count| *count > 0);
    }

    /// Merges an equally large filter of these keys.
    fn merge(&mut self, run: impl Iterator<Item = u8>, times: u64, how: Merge) {
        let empty = image::reshape(&self.empty, self.shape.0, self.shape.1);
        let mut twin = CountingFilter::from_bytes(&empty).unwrap();
        let mut theirs = BTreeMap::new();
        for hash in run.map(|key| self.keys[usize::from(key)]) {
            if twin.add(&at(hash), times).is_ok_and(|count| count > 0) {
                *theirs.entry(self.addressing.entry(hash)).or_insert(0) += times;
            }
        }
        let mut both = self.counts.clone();
        let mut sum = Some(self.len());
        for (entry, count) in theirs {
            let ours = both.entry(entry).or_insert(0);
            let more = if how == Merge::Sum { count } else { count.saturating_sub(*ours) };
            sum = sum.and_then(|sum| sum.checked_add(more));
            *ours = ours.saturating_add(more);
        }
        let before = self.filter.to_bytes();
        match self.filter.merge(&twin, how) {
            Ok(()) => {
                assert!(sum.is_some());
                self.counts = both;
            }
            Err(refusal) => {
                assert!(self.filter.to_bytes() == before);
                assert!(matches!(refusal, MergeError::Full(_)));
                assert!(refusal != MergeError::Full(FullError::Overflow) || sum.is_none());
            }
        }
    }

    fn step(&mut self, op: &Op) {
        let run = |key: u8, count: u8| (0..count).map(move |i| key.wrapping_add(i));
        match *op {
            Op::Insert(key) => self.add(key, 1),
            Op::Add(key, times) => self.add(key, times),
            Op::InsertRun(key, count) => run(key, count).for_each(|key| self.add(key, 1)),
            Op::Remove(key) => self.remove(key),
            Op::RemoveRun(key, count) => run(key, count).for_each(|key| self.remove(key)),
            Op::Merge(key, count, times, max) => {
                self.merge(run(key, count), times, if max { Merge::Max } else { Merge::Sum });
            }
            Op::Reload => {
                let bytes = self.filter.to_bytes();
                let read = CountingFilter::from_bytes(&bytes).unwrap();
                assert!(read == self.filter && read.to_bytes() == bytes);
                self.filter = read;
            }
            Op::Clear => {
                self.filter.clear();
                self.counts.clear();
            }
        }
    }

    /// Every key has exactly the count of its entry.
    fn check(&self) {
        assert_eq!(self.filter.len(), self.len());
        let mut counts: Vec<u64> = self.filter.counts().collect();
        let mut expected: Vec<u64> = self.counts.values().copied().collect();
        counts.sort_unstable();
        expected.sort_unstable();
        assert_eq!(counts, expected);
        let bytes = self.filter.to_bytes();
        assert_eq!(bytes.len(), self.filter.size_in_bytes());
        let view = CountingView::open(&bytes).unwrap();
        assert_eq!(view.verify(), Ok(()));
        for &hash in &self.keys {
            let expected = self.counts.get(&self.addressing.entry(hash)).copied().unwrap_or(0);
            assert_eq!(self.filter.count(&at(hash)), expected);
            assert_eq!(view.count(&at(hash)), expected);
            assert_eq!(self.filter.contains(&at(hash)), expected > 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn after_any_operations_a_counting_filter_has_the_exact_counts_of_its_entries(
        setup in setup(),
        ops in prop::collection::vec(op(), 0..40),
    ) {
        let mut run = Run::new(setup);
        for op in &ops {
            run.step(op);
            run.check();
        }
    }
}
