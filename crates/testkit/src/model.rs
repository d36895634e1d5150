//! A filter and the exact multiset it must match.
//!
//! The model is exact. A filter cannot distinguish keys with equal
//! [entries](crate::addressing::Entry), so it *is* a multiset of entries. The model computes the
//! entry of each key, and so the exact value of every count, not only a lower bound. Each operation
//! is checked at once; [`Model::check`] compares everything.
//!
//! The checks:
//!
//! * There are no false negatives, and every count and the length are right.
//! * A failed insert changes no byte, and the reason it gives is true.
//! * An entry has at most two slots, and the number of counters stays within its limit.
//! * After all keys are removed, the bytes are those of the empty filter.
//! * Bytes read back give an equal filter, and a view of them gives equal answers.

use std::collections::BTreeMap;

use koel::{CuckooFilter, FilterView, FullError, ImageError, Merge, MergeError, Store};

use crate::addressing::{Addressing, Entry};
use crate::audit::audit;
use crate::cases::{Case, CaseKey, KEYS, KeyNumber, Op, Setup, Universe};
use crate::image;
use crate::keys::at;

/// The copies of each key, under the entry they share.
type Multiset = BTreeMap<Entry, BTreeMap<KeyNumber, u64>>;

/// A filter and its expected content.
#[derive(Debug)]
pub struct Model {
    setup: Setup,
    filter: CuckooFilter,
    empty: Vec<u8>,
    addressing: Addressing,
    /// Hash and entry of each key.
    keys: Vec<(u64, Entry)>,
    held: Multiset,
    /// How many of the copies are in the stash, by address.
    stash: BTreeMap<u64, u64>,
}

impl Model {
    /// The empty filter of `setup`.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let filter = setup.build();
        let empty = filter.to_bytes();
        let addressing = Addressing::of(&empty);
        let keys = setup.hashes(&filter).into_iter().map(|hash| (hash, addressing.entry(hash)));
        let (keys, held, stash) = (keys.collect(), Multiset::new(), BTreeMap::new());
        Self { setup, filter, empty, addressing, keys, held, stash }
    }

    /// Runs `case`, then removes everything again. Returns the bytes from before the removal.
    ///
    /// # Panics
    /// If the filter deviates from the model.
    pub fn run(case: &Case) -> Vec<u8> {
        let mut model = Self::new(case.setup.clone());
        case.ops.iter().for_each(|op| model.apply(op));
        model.check();
        let bytes = model.filter.to_bytes();
        model.drain();
        bytes
    }

    /// The current filter.
    #[must_use]
    pub fn filter(&self) -> &CuckooFilter {
        &self.filter
    }

    /// Applies one operation to both and compares the results.
    ///
    /// # Panics
    /// If the two differ.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Insert(key) => match self.insert(*key) {
                Ok(()) | Err(_) => {}
            },
            Op::InsertTimes(key, times) => {
                self.insert_each(&vec![*key; usize::from(*times)]);
            }
            Op::InsertRun(first, count) => {
                self.insert_each(&run(*first, *count).collect::<Vec<_>>());
            }
            Op::InsertUnique(key) => self.insert_unique(*key),
            Op::Remove(key) => self.remove(*key),
            Op::RemoveRun(first, count) => {
                self.remove_each(&run(*first, *count).collect::<Vec<_>>());
                run(*first, *count).for_each(|key| self.remove_all(key));
            }
            Op::Count(key) => self.check_key(*key),
            Op::Clear => {
                self.filter.clear();
                self.held.clear();
                self.stash.clear();
                assert_eq!(self.filter.to_bytes(), self.empty, "a cleared filter is empty");
            }
            Op::Reload => self.reload(),
            Op::View => self.check_view(),
            Op::Merge { other, counts, as_view } => self.merge(other, *counts, *as_view),
            Op::Check => self.check(),
        }
    }

    /// Removes every copy of every key; then the bytes must be those of the empty filter.
    ///
    /// # Panics
    /// If a key is not found, or the filter is not empty afterwards.
    pub fn drain(&mut self) {
        (0..=KeyNumber::MAX).for_each(|key| self.remove_all(key));
        assert!(self.held.is_empty() && self.stash.is_empty());
        assert_eq!(self.filter.to_bytes(), self.empty, "all removed is not empty");
    }

    /// A key as the filter gets it.
    fn key(&self, key: KeyNumber) -> CaseKey {
        match self.setup.universe {
            Universe::Integers => CaseKey::Integer(key.into()),
            _ => CaseKey::Hash(at(self.keys[usize::from(key)].0)),
        }
    }

    fn keys_of(&self, keys: &[KeyNumber]) -> Vec<CaseKey> {
        keys.iter().map(|&key| self.key(key)).collect()
    }

    /// Inserts by single calls until one is refused. A batch must have an equal result.
    fn insert_each(&mut self, keys: &[KeyNumber]) {
        let mut at_once = self.filter.clone();
        let many = at_once.insert_many(&self.keys_of(keys));
        let one_by_one = keys.iter().try_for_each(|&key| self.insert(key));
        assert_eq!(many, one_by_one);
        assert!(at_once == self.filter, "inserting many is not inserting each");
    }

    /// Removes a copy of each key that has one. A batch must have an equal result.
    fn remove_each(&mut self, keys: &[KeyNumber]) {
        let present: Vec<KeyNumber> =
            keys.iter().copied().filter(|&key| self.copies(key) > 0).collect();
        let (mut at_once, mut removed) = (self.filter.clone(), vec![false; present.len()]);
        at_once.remove_many(&self.keys_of(&present), &mut removed);
        present.iter().for_each(|&key| self.remove(key));
        assert!(removed.iter().all(|&removed| removed), "a present key was not removed");
        assert!(at_once == self.filter, "removing many is not removing each");
    }

    fn insert(&mut self, key: KeyNumber) -> Result<(), FullError> {
        let before = self.filter.to_bytes();
        let entry = self.keys[usize::from(key)].1;
        let inserted = self.filter.insert(&self.key(key));
        match inserted {
            Ok(()) => self.hold(key),
            Err(full) => {
                self.check_unchanged(&before);
                let distinct = self.table().len() as u64 + u64::from(self.in_table(entry) == 0);
                self.check_refusal(full, distinct);
                self.check_stash_is_full(full);
                let slots = matches!(full, FullError::Slots { .. });
                let copies = self.in_table(entry);
                assert_eq!(slots, copies == 0, "{full} for {copies} copies");
            }
        }
        self.check_key(key);
        inserted
    }

    fn insert_unique(&mut self, key: KeyNumber) {
        let before = self.filter.to_bytes();
        match self.filter.insert_unique(&self.key(key)) {
            Ok(new) => {
                assert_eq!(new, self.count(key) == 0, "insert_unique of key {key}");
                if new {
                    self.hold(key);
                } else {
                    self.check_unchanged(&before);
                }
            }
            Err(full) => {
                self.check_unchanged(&before);
                self.check_refusal(full, self.table().len() as u64 + 1);
                self.check_stash_is_full(full);
                assert!(matches!(full, FullError::Slots { .. }), "{full}");
            }
        }
        self.check_key(key);
    }

    /// Removes a copy if the key has one. Does nothing if only another key of its entry has one:
    /// the documentation forbids that removal.
    fn remove(&mut self, key: KeyNumber) {
        let copies = self.copies(key);
        if copies == 0 && self.count(key) > 0 {
            return;
        }
        let before = (copies == 0).then(|| self.filter.to_bytes());
        let removed = self.filter.remove(&self.key(key));
        assert_eq!(removed, copies > 0, "removing key {key}, which has {copies} copies");
        match before {
            Some(before) => self.check_unchanged(&before),
            None => self.release(key),
        }
        self.check_key(key);
    }

    fn remove_all(&mut self, key: KeyNumber) {
        (0..self.copies(key)).for_each(|_| self.remove(key));
    }

    fn merge(&mut self, keys: &[(KeyNumber, u8)], counts: Merge, as_view: bool) {
        let mut other = self.new_twin();
        for &(key, times) in keys {
            other.apply(&Op::InsertTimes(key, times % 8));
        }
        let before = self.filter.to_bytes();
        let theirs = other.filter.to_bytes();
        let merged = if as_view {
            let view = FilterView::open(&theirs).expect("the bytes of a filter open");
            self.filter.merge(&view, counts)
        } else {
            self.filter.merge(&other.filter, counts)
        };
        assert_eq!(other.filter.to_bytes(), theirs, "a merge leaves the other filter alone");
        match merged {
            Ok(()) => self.unite(&other, counts),
            Err(MergeError::Full(full)) => {
                self.check_unchanged(&before);
                let (ours, theirs) = (self.table(), other.table());
                let new = theirs.keys().filter(|entry| !ours.contains_key(entry)).count();
                self.check_refusal(full, (ours.len() + new) as u64);
            }
            Err(error) => panic!("filters of one setup do not merge: {error}"),
        }
        self.check();
    }

    /// The empty filter of this setup.
    fn new_twin(&self) -> Self {
        let filter = CuckooFilter::from_bytes(&self.empty).expect("its own bytes are a filter");
        Self {
            setup: self.setup.clone(),
            filter,
            empty: self.empty.clone(),
            addressing: self.addressing,
            keys: self.keys.clone(),
            held: Multiset::new(),
            stash: BTreeMap::new(),
        }
    }

    /// The multiset after a merge with a model of the same keys.
    fn unite(&mut self, other: &Self, counts: Merge) {
        // The first key of each address in a stash, with the counts of the address in both.
        let mut stashed = BTreeMap::new();
        for key in 0..=KeyNumber::MAX {
            let (hash, _) = self.keys[usize::from(key)];
            let in_stash = self.in_stash(hash) + other.in_stash(hash);
            if in_stash > 0 {
                let larger = self.count(key).max(other.count(key));
                stashed.entry(hash).or_insert((key, in_stash, larger));
            }
        }
        let mut table = self.table();
        unite(&mut table, &other.table(), counts);
        (self.held, self.stash) = (table, BTreeMap::new());
        for (hash, (key, in_stash, larger)) in stashed {
            let entry = self.keys[usize::from(key)].1;
            let copies = match counts {
                Merge::Sum => in_stash,
                Merge::Max => larger.saturating_sub(self.in_table(entry)),
            };
            if copies > 0 {
                *self.held.entry(entry).or_default().entry(key).or_default() += copies;
                self.stash.insert(hash, copies);
            }
        }
    }

    fn reload(&mut self) {
        let bytes = self.filter.to_bytes();
        let read = CuckooFilter::from_bytes(&bytes).expect("its own bytes are a filter");
        assert_eq!(read, self.filter);
        assert_eq!(read.to_bytes(), bytes, "reading and writing changes the bytes");
        self.filter = read;
        self.check_sizes();
    }

    fn copies(&self, key: KeyNumber) -> u64 {
        let keys = self.held.get(&self.keys[usize::from(key)].1);
        keys.and_then(|keys| keys.get(&key)).copied().unwrap_or(0)
    }

    /// Copies of all keys of an entry that are in the table.
    fn in_table(&self, entry: Entry) -> u64 {
        let all: u64 = self.held.get(&entry).map_or(0, |keys| keys.values().sum());
        let stash = self.stash.iter().filter(|&(&hash, _)| self.addressing.entry(hash) == entry);
        all - stash.map(|(_, copies)| copies).sum::<u64>()
    }

    /// The copies that are in the table.
    fn table(&self) -> Multiset {
        let mut table = self.held.clone();
        for (&hash, &copies) in &self.stash {
            let entry = self.addressing.entry(hash);
            let keys = table.get_mut(&entry).expect("a key in the stash is held");
            let (mut left, all) = (copies, keys);
            for (key, held) in all.iter_mut() {
                if self.keys[usize::from(*key)].0 == hash {
                    let taken = left.min(*held);
                    (left, *held) = (left - taken, *held - taken);
                }
            }
            all.retain(|_, held| *held > 0);
            assert_eq!(left, 0, "the stash has more copies than were inserted");
        }
        table.retain(|_, keys| !keys.is_empty());
        table
    }

    fn in_stash(&self, hash: u64) -> u64 {
        self.stash.get(&hash).copied().unwrap_or(0)
    }

    /// What the filter must count for a key.
    fn count(&self, key: KeyNumber) -> u64 {
        let (hash, entry) = self.keys[usize::from(key)];
        self.in_table(entry) + self.in_stash(hash)
    }

    /// Adds a copy of a key that the filter has taken: to the stash if the key is there already, or
    /// if the filter says that one more key is.
    fn hold(&mut self, key: KeyNumber) {
        let (hash, entry) = self.keys[usize::from(key)];
        let is_new = self.filter.stashed_keys() > self.stash.len() as u64;
        if is_new || self.stash.contains_key(&hash) {
            assert!(!is_new || !self.setup.promises_capacity(), "an honest key is in the stash");
            *self.stash.entry(hash).or_default() += 1;
        }
        *self.held.entry(entry).or_default().entry(key).or_default() += 1;
    }

    /// Takes out a copy of a key: of the stash first.
    fn release(&mut self, key: KeyNumber) {
        let (hash, entry) = self.keys[usize::from(key)];
        if let Some(copies) = self.stash.get_mut(&hash) {
            *copies -= 1;
            self.stash.retain(|_, copies| *copies > 0);
        }
        let keys = self.held.get_mut(&entry).expect("a key that is held has an entry");
        let copies = keys.get_mut(&key).expect("only a key that is held is released");
        *copies -= 1;
        if *copies == 0 {
            keys.remove(&key);
        }
        if keys.is_empty() {
            self.held.remove(&entry);
        }
    }

    // ---- every answer, every size, every reason for a refusal

    /// Compares every answer of the filter with the model's, and verifies its bytes.
    ///
    /// # Panics
    /// If they differ.
    pub fn check(&self) {
        self.compare(&self.filter);
        assert_eq!(image::stash(&self.filter.to_bytes()), self.stash, "stash");
        assert_eq!(self.filter.verify(), Ok(()));
        assert_eq!(audit(&self.filter.to_bytes()), Ok(()));
        self.check_sizes();
    }

    fn check_view(&self) {
        let bytes = self.filter.to_bytes();
        let view = FilterView::open(&bytes).expect("its own bytes open");
        self.compare(&view);
        assert_eq!(view.verify(), Ok::<(), ImageError>(()));
        assert_eq!(view.to_bytes(), bytes);
        assert_eq!(format!("{view:?}"), format!("{:?}", self.filter));
    }

    /// Compares the answers of this filter, or of a view of it.
    fn compare(&self, asked: &CuckooFilter<impl Store>) {
        let hashes: Vec<_> = self.keys.iter().map(|&(hash, _)| at(hash)).collect();
        let (mut found, mut counts) = (vec![false; hashes.len()], vec![0; hashes.len()]);
        asked.contains_many(&hashes, &mut found);
        asked.count_many(&hashes, &mut counts);
        for (number, hash) in (0..=KeyNumber::MAX).zip(&hashes) {
            let (key, total) = (usize::from(number), self.count(number));
            assert_eq!(asked.contains(hash), total > 0, "contains, key {key}");
            assert_eq!(asked.count(hash), total, "count, key {key}");
            assert_eq!((found[key], counts[key]), (total > 0, total), "many, key {key}");
        }
        let len: u64 = self.held.values().flat_map(BTreeMap::values).sum();
        assert_eq!(asked.len(), len, "length");
        let in_use: u64 = (0..).zip(asked.occupancy()).map(|(held, buckets)| held * buckets).sum();
        assert_eq!(in_use, self.filter.slots_in_use(), "occupancy");
        assert_eq!(asked.occupancy().iter().sum::<u64>(), self.filter.buckets());
    }

    /// One key, also as the key itself if the case has integer keys.
    fn check_key(&self, key: KeyNumber) {
        let total = self.count(key);
        for asked in [CaseKey::Hash(at(self.keys[usize::from(key)].0)), self.key(key)] {
            assert_eq!(self.filter.contains(&asked), total > 0, "contains, key {key}");
            assert_eq!(self.filter.count(&asked), total, "count, key {key}");
        }
    }

    /// Slots and counters: each entry in one slot or two, with a counter only where there are
    /// copies to count.
    fn check_sizes(&self) {
        let table = self.table();
        let totals = || table.values().map(|keys| keys.values().sum::<u64>());
        let at_most: u64 = totals().map(|total| total.min(2)).sum();
        let slots = self.filter.slots_in_use();
        assert!(table.len() as u64 <= slots && slots <= at_most, "{slots} slots");

        let counters = self.filter.distinct_counters();
        let counted = |copies| totals().filter(|&total| total > copies).count() as u64;
        assert!(counted(2) <= counters && counters <= counted(1), "{counters} counters");
        assert!(counters <= self.filter.counter_limit());
        assert_eq!(self.filter.stashed_keys(), self.stash.len() as u64);

        let distinct = table.len() as f64;
        let rate = distinct / self.addressing.possible_entries();
        assert!((self.filter.false_positive_rate() - rate).abs() <= 1e-9 * rate);
        assert!(self.filter.distinct_estimate() >= distinct && self.filter.load_factor() <= 1.0);
        assert_eq!(self.filter.is_empty(), self.held.is_empty());
        assert_eq!(self.filter.size_in_bytes(), self.filter.to_bytes().len());
    }

    fn check_unchanged(&self, before: &[u8]) {
        assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
    }

    /// Whether there is no room in the stash either, for an insert that found no slot.
    fn check_stash_is_full(&self, full: FullError) {
        let beside = self.filter.distinct_counters() + self.filter.stashed_keys();
        let keys = (self.table().len() + self.stash.len()) as u64;
        let is_full = keys >= self.filter.capacity() || beside >= self.filter.counter_limit();
        assert!(is_full || !matches!(full, FullError::Slots { .. }), "{full}");
    }

    /// Whether the reason is true, for an insert after which there would be `distinct` entries.
    fn check_refusal(&self, full: FullError, distinct: u64) {
        let promised = self.setup.promises_capacity() && distinct <= self.filter.capacity();
        assert!(!promised, "{full}, with {distinct} entries");
        match full {
            FullError::Slots { in_use, capacity } => {
                assert_eq!(capacity, self.filter.capacity());
                assert!(in_use <= self.filter.slots());
            }
            FullError::Counters { limit } => assert_eq!(limit, self.filter.counter_limit()),
            other => panic!("{other}, with few copies of anything"),
        }
    }
}

/// `count` keys starting with `first`, wrapping around after the last key.
fn run(first: KeyNumber, count: u8) -> impl Iterator<Item = KeyNumber> {
    const { assert!(KEYS == KeyNumber::MAX as u16 + 1) };
    (0..count).map(move |i| first.wrapping_add(i))
}

/// The table after a merge. A filter cannot divide the larger count of an entry among its keys, so
/// a maximum over several keys belongs to the first of them.
fn unite(ours: &mut Multiset, theirs: &Multiset, counts: Merge) {
    for (entry, their_keys) in theirs {
        let our_keys = ours.entry(*entry).or_default();
        match counts {
            Merge::Sum => {
                for (key, copies) in their_keys {
                    *our_keys.entry(*key).or_default() += copies;
                }
            }
            Merge::Max => {
                let their_total: u64 = their_keys.values().sum();
                let our_total: u64 = our_keys.values().sum();
                if their_total > our_total {
                    let first = their_keys.keys().next().expect("an entry is held for a key");
                    *our_keys = BTreeMap::from([(*first, their_total)]);
                }
            }
        }
    }
}
