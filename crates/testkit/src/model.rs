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
use std::ops::Range;

use koel::{
    CuckooFilter, FilterView, FullError, ImageError, Merge, MergeError, Remote, RemoteOptions,
    Store,
};

use crate::addressing::{Addressing, Entry};
use crate::audit::audit;
use crate::cases::{Case, CaseKey, KeyNumber, Op, Setup, Universe};
use crate::image;
use crate::keys::at;

/// The copies of each hash, under the entry they share.
type Multiset = BTreeMap<Entry, BTreeMap<u64, u64>>;

/// A filter and its expected content.
#[derive(Clone, Debug)]
pub struct Model {
    setup: Setup,
    filter: CuckooFilter,
    empty: Vec<u8>,
    addressing: Addressing,
    /// Hash and entry of each key.
    keys: Vec<(u64, Entry)>,
    table: Multiset,
    /// The copies in the stash, by hash.
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
        let (keys, table, stash) = (keys.collect(), Multiset::new(), BTreeMap::new());
        Self { setup, filter, empty, addressing, keys, table, stash }
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
            Op::Insert(keys) => self.insert_each(keys),
            Op::InsertUnique(key) => drop(self.insert(*key, true)),
            Op::Remove(key) => self.remove(*key),
            Op::RemoveAll(keys) => {
                self.remove_each(keys);
                keys.iter().for_each(|&key| self.remove_all(key));
            }
            Op::Count(key) => self.check_key(*key),
            Op::Clear => {
                self.filter.clear();
                self.table.clear();
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
        assert!(self.table.is_empty() && self.stash.is_empty());
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
        let one_by_one = keys.iter().try_for_each(|&key| self.insert(key, false).map(drop));
        assert_eq!(many, one_by_one);
        assert!(at_once == self.filter, "inserting many is not inserting each");
    }

    /// Removes a copy of each key that has one. A batch must have an equal result.
    fn remove_each(&mut self, keys: &[KeyNumber]) {
        // Some numbers stand for one hash.
        let by_hash = keys.iter().map(|&key| (self.keys[usize::from(key)].0, key));
        let mut present: Vec<KeyNumber> =
            by_hash.collect::<BTreeMap<_, _>>().into_values().collect();
        present.retain(|&key| self.copies(key) > 0);
        let (mut at_once, mut removed) = (self.filter.clone(), vec![false; present.len()]);
        at_once.remove_many(&self.keys_of(&present), &mut removed);
        present.iter().for_each(|&key| self.remove(key));
        assert!(removed.iter().all(|&removed| removed), "a present key was not removed");
        assert!(at_once == self.filter, "removing many is not removing each");
    }

    /// Inserts a key, or if `unique` only one that is not there. Returns whether it is new.
    fn insert(&mut self, key: KeyNumber, unique: bool) -> Result<bool, FullError> {
        let (before, known) = (self.filter.to_bytes(), self.count(key) > 0);
        let given = self.key(key);
        let inserted = if unique {
            self.filter.insert_unique(&given)
        } else {
            self.filter.insert(&given).map(|()| true)
        };
        match inserted {
            Ok(new) => {
                assert_eq!(new, !unique || !known, "insert_unique of key {key}");
                if new {
                    self.hold(key);
                } else {
                    self.check_unchanged(&before);
                }
            }
            Err(full) => {
                self.check_unchanged(&before);
                let copies = self.in_table(self.keys[usize::from(key)].0);
                self.check_refusal(full, self.table.len() as u64 + u64::from(copies == 0));
                self.check_stash_is_full(full);
                let slots = matches!(full, FullError::Slots { .. });
                assert!(slots == (copies == 0) && (slots || !unique), "{full} for {copies} copies");
            }
        }
        self.check_key(key);
        inserted
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
        let mut other = self.clone();
        other.apply(&Op::Clear);
        for &(key, times) in keys {
            other.insert_each(&vec![key; usize::from(times % 8)]);
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
                let new = other.table.keys().filter(|entry| !self.table.contains_key(entry));
                self.check_refusal(full, (self.table.len() + new.count()) as u64);
            }
            Err(error) => panic!("filters of one setup do not merge: {error}"),
        }
        self.check();
    }

    /// The multiset after a merge with a model of the same keys.
    fn unite(&mut self, other: &Self, counts: Merge) {
        let stashed = self.stash.keys().chain(other.stash.keys());
        let stashed: BTreeMap<u64, _> = stashed
            .map(|&hash| (hash, [self, other].map(|it| (it.in_stash(hash), it.count_of(hash)))))
            .collect();
        unite(&mut self.table, &other.table, counts);
        for (hash, [(ours, our_count), (theirs, their_count)]) in stashed {
            let copies = match counts {
                Merge::Sum => ours + theirs,
                Merge::Max => our_count.max(their_count).saturating_sub(self.in_table(hash)),
            };
            self.stash.insert(hash, copies);
        }
        self.stash.retain(|_, copies| *copies > 0);
    }

    fn reload(&mut self) {
        let bytes = self.filter.to_bytes();
        let read = CuckooFilter::from_bytes(&bytes).expect("its own bytes are a filter");
        assert_eq!(read, self.filter);
        assert_eq!(read.to_bytes(), bytes, "reading and writing changes the bytes");
        self.filter = read;
        self.check_sizes();
    }

    /// Copies of all keys with the entry of a hash that are in the table.
    fn in_table(&self, hash: u64) -> u64 {
        let twins = self.table.get(&self.addressing.entry(hash));
        twins.map_or(0, |copies| copies.values().sum())
    }

    fn in_stash(&self, hash: u64) -> u64 {
        self.stash.get(&hash).copied().unwrap_or(0)
    }

    /// What the filter must count for a hash.
    fn count_of(&self, hash: u64) -> u64 {
        self.in_table(hash) + self.in_stash(hash)
    }

    fn count(&self, key: KeyNumber) -> u64 {
        self.count_of(self.keys[usize::from(key)].0)
    }

    /// How often a key was inserted and not removed.
    fn copies(&self, key: KeyNumber) -> u64 {
        let (hash, entry) = self.keys[usize::from(key)];
        let in_table = self.table.get(&entry).and_then(|copies| copies.get(&hash));
        in_table.copied().unwrap_or(0) + self.in_stash(hash)
    }

    /// Adds a copy of a key that the filter has taken: to the stash if the key is there already, or
    /// if the filter says that one more key is.
    fn hold(&mut self, key: KeyNumber) {
        let (hash, entry) = self.keys[usize::from(key)];
        let is_new = self.filter.stashed_keys() > self.stash.len() as u64;
        let copies = if is_new || self.stash.contains_key(&hash) {
            assert!(!is_new || !self.setup.promises_capacity(), "an honest key is in the stash");
            self.stash.entry(hash)
        } else {
            self.table.entry(entry).or_default().entry(hash)
        };
        *copies.or_default() += 1;
    }

    /// Takes out a copy of a key: of the stash first.
    fn release(&mut self, key: KeyNumber) {
        let (hash, entry) = self.keys[usize::from(key)];
        let twins = self.table.entry(entry).or_default();
        let all = if self.stash.contains_key(&hash) { &mut self.stash } else { &mut *twins };
        let copies = all.get_mut(&hash).expect("only a key that is held is released");
        *copies -= 1;
        all.retain(|_, copies| *copies > 0);
        self.table.retain(|_, twins| !twins.is_empty());
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
        self.check_remote(&bytes);
    }

    /// Asks the filter as if its bytes were elsewhere.
    fn check_remote(&self, file: &[u8]) {
        let fetch = |range: &Range<u64>| {
            let bounds = [range.start, range.end];
            let [start, end] = bounds.map(|at| usize::try_from(at).expect("bytes in memory"));
            &file[start..end]
        };
        let header = fetch(&Remote::HEADER);
        let tail = Remote::tail(header).expect("its own header");
        let remote = Remote::open(header, fetch(&tail)).expect("its own answers");
        let hashes: Vec<_> = self.keys.iter().map(|&(hash, _)| at(hash)).collect();
        let mut found = vec![false; hashes.len()];
        let options = RemoteOptions { gap: 64, ..RemoteOptions::default() };
        let batch = remote.ask(&hashes, options).expect("memory for the ranges");
        let fetched: Vec<_> = batch.ranges().iter().map(fetch).collect();
        remote.answer(&batch, &fetched, &mut found).expect("its own bytes");
        for (number, found) in (0..=KeyNumber::MAX).zip(found) {
            assert_eq!(found, self.count(number) > 0, "remote, key {number}");
        }
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
        let all = self.table.values().chain([&self.stash]);
        let len: u64 = all.flat_map(BTreeMap::values).sum();
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
        let totals = || self.table.values().map(|keys| keys.values().sum::<u64>());
        let at_most: u64 = totals().map(|total| total.min(2)).sum();
        let slots = self.filter.slots_in_use();
        assert!(self.table.len() as u64 <= slots && slots <= at_most, "{slots} slots");

        let counters = self.filter.distinct_counters();
        let counted = |copies| totals().filter(|&total| total > copies).count() as u64;
        assert!(counted(2) <= counters && counters <= counted(1), "{counters} counters");
        assert!(counters <= self.filter.counter_limit());
        assert_eq!(self.filter.stashed_keys(), self.stash.len() as u64);

        let distinct = self.table.len() as f64;
        let rate = distinct / self.addressing.possible_entries();
        assert!((self.filter.false_positive_rate() - rate).abs() <= 1e-9 * rate);
        assert!(self.filter.distinct_estimate() >= distinct && self.filter.load_factor() <= 1.0);
        assert_eq!(self.filter.is_empty(), self.table.is_empty() && self.stash.is_empty());
        assert_eq!(self.filter.size_in_bytes(), self.filter.to_bytes().len());
    }

    fn check_unchanged(&self, before: &[u8]) {
        assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
    }

    /// Whether there is no room in the stash either, for an insert that found no slot.
    fn check_stash_is_full(&self, full: FullError) {
        let beside = self.filter.distinct_counters() + self.filter.stashed_keys();
        let keys = (self.table.len() + self.stash.len()) as u64;
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

/// The table after a merge. A filter cannot divide the larger count of an entry among its keys, so
/// a maximum over several keys belongs to the first of them.
fn unite(ours: &mut Multiset, theirs: &Multiset, counts: Merge) {
    for (entry, their_keys) in theirs {
        let our_keys = ours.entry(*entry).or_default();
        let totals = [&*our_keys, their_keys].map(|keys| keys.values().sum::<u64>());
        match counts {
            Merge::Sum => {
                for (hash, copies) in their_keys {
                    *our_keys.entry(*hash).or_default() += copies;
                }
            }
            Merge::Max if totals[1] > totals[0] => {
                *our_keys = their_keys.keys().take(1).map(|hash| (*hash, totals[1])).collect();
            }
            Merge::Max => {}
        }
    }
}
