//! Random operations against an exact multiset, for types whose entries a second implementation of
//! the addressing predicts: counting filters, maplets, and concurrent filters on one thread. For
//! plain filters, which also have a stash, there is `testkit::model`.
//!
//! Keys with equal entries are one key to all of them, so the model is a multiset of entries, each
//! with a value: it predicts every count and every value, wrong ones included. Tables are small,
//! keys collide, and values have few bits, so that most counts exceed their slots.

use std::collections::BTreeMap;

use koel::{
    ConcurrentFilter, CountingFilter, FullError, Maplet, MapletView, Merge, MergeError, Prefer,
};
use proptest::prelude::*;
use testkit::addressing::{Addressing, Entry};
use testkit::image::{self, word};
use testkit::keys::{all_at, at, hashes, sharing_entry, sharing_home, sharing_pair};

use crate::subject::{Shared, Subject};

/// Keys are numbered.
type Number = u8;

#[derive(Clone, Debug)]
enum Op {
    Put(Number, u64),
    /// One value for several keys, starting with this one.
    PutRun(Number, u64, u8),
    Take(Number, u64),
    TakeRun(Number, u64, u8),
    /// What only one type has.
    Own(Number, u64, u64, u8),
    Reload,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, count) = (any::<Number>, 0_u8..100);
    let value = || prop_oneof![8 => 0_u64..4, 1 => 4_u64..10, 1 => prop::sample::select(vec![1 << 39, u64::MAX / 2, u64::MAX])];
    prop_oneof![
        6 => key().prop_map(|key| Op::Put(key, 1)),
        6 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => (key(), 0_u64..4, count.clone()).prop_map(|(k, v, n)| Op::PutRun(k, v, n)),
        6 => (key(), 0_u64..4).prop_map(|(key, value)| Op::Take(key, value)),
        2 => (key(), 0_u64..4, count.clone()).prop_map(|(k, v, n)| Op::TakeRun(k, v, n)),
        4 => (key(), value(), value(), count).prop_map(|(k, v, w, n)| Op::Own(k, v, w, n)),
        1 => Just(Op::Reload),
        1 => Just(Op::Clear),
    ]
}

/// Segments, buckets of each, error rate, bits of a value or a count.
type Setup = (u8, u32, f64, u32);

fn setup() -> impl Strategy<Value = Setup> {
    let rate = prop::sample::select(vec![0.1, 0.004, 1e-5, 1e-8]);
    (0_u8..3, 1_u32..12, rate, prop::sample::select(vec![1, 2, 5, 12, 21, 40]))
}

/// A type with such a model.
trait Exact: Subject {
    /// An empty one of few buckets.
    fn small(rate: f64, bits: u32) -> Self;

    /// The value that stands for a number, under which the model has it.
    fn drawn(number: u64, bits: u32) -> u64;

    /// The value in the multiset, and how often it is there.
    fn held(value: u64) -> (u64, u64);

    /// What a key has whose entry has these values so often.
    fn answer(values: impl Iterator<Item = (u64, u64)>) -> Vec<u64>;

    /// Checks why an insert was refused.
    fn check_refusal(run: &Run<Self>, hash: u64, value: u64, full: FullError);

    /// An operation that no other type has.
    fn own(run: &mut Run<Self>, op: (Number, u64, u64, u8));

    /// Checks the whole against the multiset.
    fn check(_run: &Run<Self>) {}
}

struct Run<S> {
    it: S,
    empty: Vec<u8>,
    addressing: Addressing,
    bits: u32,
    keys: Vec<u64>,
    held: BTreeMap<(Entry, u64), u64>,
    /// What a maplet has in its stash: exact pairs of address and value.
    stash: BTreeMap<(u64, u64), u64>,
}

impl<S: Exact> Run<S> {
    fn new((segment_bits, buckets, rate, bits): Setup) -> Self {
        let empty = image::reshape(&S::small(rate, bits).to_bytes(), segment_bits, buckets);
        let addressing = Addressing::of(&empty);
        // A quarter each: equal entries, equal bucket pairs, equal home buckets, and random keys.
        let first = hashes(5, 1).next().unwrap();
        let same_entry = sharing_entry(&addressing, first).take(16);
        let same_pair = sharing_pair(&addressing, first).step_by(3).take(64);
        let same_home = sharing_home(&addressing, addressing.pair(first).0);
        let keys = same_entry.chain(same_pair).chain(same_home).chain(hashes(6, 256));
        let (it, keys) = (S::from_bytes(&empty).unwrap(), keys.take(256).collect());
        Self { it, empty, addressing, bits, keys, held: BTreeMap::new(), stash: BTreeMap::new() }
    }

    fn len(&self) -> u64 {
        self.held.values().chain(self.stash.values()).sum()
    }

    fn hash(&self, key: Number) -> u64 {
        self.keys[usize::from(key)]
    }

    fn entry(&self, key: Number) -> Entry {
        self.addressing.entry(self.hash(key))
    }

    /// How often this entry is there with this value.
    fn count(&self, entry: Entry, value: u64) -> u64 {
        self.held.get(&(entry, S::held(value).0)).copied().unwrap_or(0)
    }

    fn hold(&mut self, entry: Entry, value: u64) {
        let (value, times) = S::held(value);
        *self.held.entry((entry, value)).or_default() += times;
        self.held.retain(|_, count| *count > 0);
    }

    fn release(&mut self, entry: Entry, value: u64) {
        *self.held.get_mut(&(entry, S::held(value).0)).expect("it is held") -= 1;
        self.held.retain(|_, count| *count > 0);
    }

    fn put(&mut self, key: Number, value: u64) {
        let (hash, before, value) =
            (self.hash(key), self.it.to_bytes(), S::drawn(value, self.bits));
        match self.it.put(&at(hash), value) {
            Ok(()) if stash_of(&self.it.to_bytes()) == self.stash => {
                self.hold(self.addressing.entry(hash), value);
            }
            Ok(()) => {
                S::check_refusal(self, hash, value, FullError::Overflow);
                *self.stash.entry((hash, value)).or_default() += 1;
            }
            Err(full) => {
                assert!(self.it.to_bytes() == before, "{full}");
                S::check_refusal(self, hash, value, full);
            }
        }
    }

    fn take(&mut self, key: Number, value: u64) {
        let value = S::drawn(value, self.bits);
        let expected = self.forget(key, value);
        assert_eq!(self.it.take(&at(self.hash(key)), value), expected);
    }

    /// Takes a value of a key out of the model: from the stash if it is there. False if there is
    /// none.
    fn forget(&mut self, key: Number, value: u64) -> bool {
        let (entry, pair) = (self.entry(key), (self.hash(key), value));
        if let Some(copies) = self.stash.get_mut(&pair) {
            *copies -= 1;
            self.stash.retain(|_, copies| *copies > 0);
            return true;
        }
        let is_held = self.count(entry, value) > 0;
        if is_held {
            self.release(entry, value);
        }
        is_held
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Put(key, value) => self.put(key, value),
            Op::PutRun(first, value, count) => {
                run(first, count).for_each(|key| self.put(key, value));
            }
            Op::Take(key, value) => self.take(key, value),
            Op::TakeRun(first, value, count) => {
                run(first, count).for_each(|key| self.take(key, value));
            }
            Op::Own(key, one, other, count) => S::own(self, (key, one, other, count)),
            Op::Reload => {
                let bytes = self.it.to_bytes();
                let read = S::from_bytes(&bytes).unwrap();
                assert!(read == self.it && read.to_bytes() == bytes);
                self.it = read;
            }
            Op::Clear => {
                self.it.clear();
                self.held.clear();
                self.stash.clear();
            }
        }
    }

    /// Every key has exactly what its entry has.
    fn check(&self) {
        assert_eq!(self.it.len(), self.len());
        assert_eq!(self.it.verify(), Ok(()));
        let all = self.it.get_many(&all_at(&self.keys));
        for (&hash, found) in self.keys.iter().zip(all) {
            let entry = self.addressing.entry(hash);
            let held = self.held.range((entry, 0)..=(entry, u64::MAX));
            let held = held.map(|(&(_, value), &count)| (value, count));
            let stashed = self.stash.range((hash, 0)..=(hash, u64::MAX));
            let stashed = stashed.map(|(&(_, value), _)| (value, 1));
            let expected = S::answer(held.chain(stashed));
            assert_eq!([&self.it.get(&at(hash)), &found], [&expected; 2]);
            assert_eq!(self.it.contains(&at(hash)), !expected.is_empty());
        }
        assert_eq!(stash_of(&self.it.to_bytes()), self.stash);
        S::check(self);
    }
}

/// The pairs in the stash, with their copies.
fn stash_of(image: &[u8]) -> BTreeMap<(u64, u64), u64> {
    let pair = |record| ((word(record, 0), word(record, 1)), word(record, 2));
    image::section(image, "stashed keys").map(pair).collect()
}

/// So many keys, starting with this one.
fn run(first: Number, count: u8) -> impl Iterator<Item = Number> {
    (0..count).map(move |i| first.wrapping_add(i))
}

/// Runs the operations, then removes everything, which must leave the empty bytes.
fn runs_exactly<S: Exact>(setup: Setup, ops: &[Op]) {
    let mut run = Run::<S>::new(setup);
    for op in ops {
        run.step(op);
        run.check();
    }
    if run.len() < 5000 {
        for ((hash, value), copies) in std::mem::take(&mut run.stash) {
            (0..copies).for_each(|_| assert!(run.it.take(&at(hash), value)));
        }
        let held: Vec<_> = run.held.keys().copied().collect();
        for (entry, value) in held {
            let hash = run.keys.iter().copied().find(|&hash| run.addressing.entry(hash) == entry);
            let key = at(hash.expect("an entry of a key"));
            (0..run.held[&(entry, value)]).for_each(|_| assert!(run.it.take(&key, value)));
        }
        assert!(run.it.to_bytes() == run.empty);
    }
}

/// The answer of a type that counts.
fn counted(values: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    values.map(|(_, count)| count).collect()
}

impl Exact for CountingFilter {
    fn small(rate: f64, bits: u32) -> Self {
        CountingFilter::builder(1, rate.max(1e-6)).count_bits(bits).build().unwrap()
    }

    fn drawn(number: u64, _: u32) -> u64 {
        number
    }

    fn held(times: u64) -> (u64, u64) {
        (0, times)
    }

    fn answer(values: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        counted(values)
    }

    /// A key that is present needs no room.
    fn check_refusal(run: &Run<Self>, hash: u64, times: u64, full: FullError) {
        let overflows = run.len().checked_add(times).is_none();
        assert_eq!(full == FullError::Overflow, overflows);
        assert!(overflows || run.count(run.addressing.entry(hash), 0) == 0, "{full}");
    }

    /// Merges an equally large filter of several keys, each inserted so often.
    fn own(run: &mut Run<Self>, (first, times, how, count): (Number, u64, u64, u8)) {
        let how = if how % 2 == 0 { Merge::Sum } else { Merge::Max };
        let mut twin = Self::from_bytes(&run.empty).unwrap();
        let mut theirs = BTreeMap::new();
        for key in self::run(first, count) {
            if twin.add(&at(run.hash(key)), times).is_ok_and(|count| count > 0) {
                *theirs.entry((run.entry(key), 0)).or_insert(0) += times;
            }
        }
        let mut both = run.held.clone();
        let mut sum = Some(run.len());
        for (entry, count) in theirs {
            let ours = both.entry(entry).or_insert(0);
            let more = if how == Merge::Sum { count } else { count.saturating_sub(*ours) };
            sum = sum.and_then(|sum| sum.checked_add(more));
            *ours = ours.saturating_add(more);
        }
        let before = run.it.to_bytes();
        match run.it.merge(&twin, how) {
            Ok(()) => {
                assert!(sum.is_some());
                run.held = both;
            }
            Err(refusal) => {
                assert!(run.it.to_bytes() == before && matches!(refusal, MergeError::Full(_)));
                assert!(refusal != MergeError::Full(FullError::Overflow) || sum.is_none());
            }
        }
    }

    fn check(run: &Run<Self>) {
        let mut counts: Vec<u64> = run.it.counts().collect();
        let mut expected: Vec<u64> = run.held.values().copied().collect();
        counts.sort_unstable();
        expected.sort_unstable();
        assert_eq!(counts, expected);
    }
}

impl Exact for Maplet {
    fn small(rate: f64, bits: u32) -> Self {
        let capacity = if bits % 3 == 1 { 1 } else { 300 };
        Maplet::builder(capacity, rate.max(1e-6), bits.max(2)).build().unwrap()
    }

    /// One of four values: the two lowest, each with and without the top bit, which shows whether
    /// wide values are truncated.
    fn drawn(number: u64, bits: u32) -> u64 {
        number & 1 | (number >> 1 & 1) << (bits.max(2) - 1)
    }

    fn held(value: u64) -> (u64, u64) {
        (value, 1)
    }

    fn answer(values: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        let each = |(value, count): (u64, u64)| vec![value; usize::try_from(count).unwrap()];
        let mut all: Vec<u64> = values.flat_map(each).collect();
        all.sort_unstable();
        all
    }

    /// Both buckets are full, or the stash has pairs of the key; it takes no more where the maplet
    /// holds the pairs that it was built for.
    fn check_refusal(run: &Run<Self>, hash: u64, _: u64, full: FullError) {
        if run.stash.range((hash, 0)..=(hash, u64::MAX)).next().is_some() {
            return;
        }
        if let FullError::Slots { in_use, capacity } = full {
            assert!(in_use + run.stash.len() as u64 >= capacity);
        }
        let (home, other) = run.addressing.pair(hash);
        let here: Vec<_> =
            run.it.entries().filter(|e| e.bucket == home || e.bucket == other).collect();
        let slots = if home == other { 4 } else { 8 };
        assert_eq!(here.len(), slots);
    }

    /// Replaces a value.
    fn own(run: &mut Run<Self>, (key, old, new, _): (Number, u64, u64, u8)) {
        let [old, new] = [old, new].map(|value| Self::drawn(value, run.bits));
        let (entry, hash) = (run.entry(key), run.hash(key));
        let (is_stashed, expected) = (run.stash.contains_key(&(hash, old)), run.forget(key, old));
        assert_eq!(run.it.replace(&at(hash), old, new), Ok(expected));
        if is_stashed {
            *run.stash.entry((hash, new)).or_default() += 1;
        } else if expected {
            run.hold(entry, new);
        }
    }

    fn check(run: &Run<Self>) {
        let named = run
            .it
            .entries()
            .map(|entry| (run.addressing.entry_in(entry.bucket, entry.fingerprint), entry.value));
        let mut entries = BTreeMap::new();
        named.for_each(|entry| *entries.entry(entry).or_insert(0) += 1);
        assert_eq!(entries, run.held);
        let bytes = run.it.to_bytes();
        let view = MapletView::open(&bytes).unwrap();
        assert!(run.keys.iter().all(|&hash| view.get(&at(hash)).eq(run.it.get(&at(hash)))));
    }
}

impl Exact for Shared {
    /// Of 32 and of 64 bits, with as few counters as `bits` says.
    fn small(rate: f64, bits: u32) -> Self {
        let prefer = if bits.is_multiple_of(2) { Prefer::Small } else { Prefer::Fast };
        let builder = ConcurrentFilter::builder(1, rate.max(0.001)).prefer(prefer);
        Self(builder.counter_limit(bits.into()).build().unwrap())
    }

    fn drawn(_: u64, _: u32) -> u64 {
        1
    }

    fn held(copies: u64) -> (u64, u64) {
        (0, copies)
    }

    fn answer(values: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        counted(values)
    }

    fn check_refusal(run: &Run<Self>, hash: u64, _: u64, full: FullError) {
        let known = run.count(run.addressing.entry(hash), 0);
        assert_eq!(matches!(full, FullError::Slots { .. }), known == 0, "{full}");
    }

    /// Inserts a key if it is absent.
    fn own(run: &mut Run<Self>, (key, ..): (Number, u64, u64, u8)) {
        let (entry, key) = (run.entry(key), at(run.hash(key)));
        let is_known = run.count(entry, 0) > 0;
        match run.it.0.insert_unique(&key) {
            Ok(added) => {
                assert_eq!(added, !is_known);
                if added {
                    run.hold(entry, 1);
                }
            }
            Err(full) => assert!(matches!(full, FullError::Slots { .. }) && !is_known),
        }
    }

    fn check(run: &Run<Self>) {
        crate::concurrent::assert_sound(&run.it.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn after_any_operations_a_counting_filter_has_the_exact_counts_of_its_entries(
        (setup, ops) in (setup(), prop::collection::vec(op(), 0..40)),
    ) {
        runs_exactly::<CountingFilter>(setup, &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn after_any_operations_a_maplet_equals_the_multiset_of_its_pairs(
        (setup, ops) in (setup(), prop::collection::vec(op(), 0..40)),
    ) {
        runs_exactly::<Maplet>(setup, &ops);
    }

    #[test]
    fn after_any_operations_a_concurrent_filter_equals_its_multiset(
        (setup, ops) in (setup(), prop::collection::vec(op(), 0..40)),
    ) {
        runs_exactly::<Shared>(setup, &ops);
    }
}
