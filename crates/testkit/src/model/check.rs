//! Comparing a filter with its model: every answer, every size, every reason for a refusal.

use std::collections::BTreeMap;

use koel::{FilterView, FullError, ImageError};

use super::Model;
use crate::audit::audit;
use crate::cases::{KeyNumber, Universe};
use crate::image;
use crate::keys::{all_at, at};

impl Model {
    /// Compares every answer of the filter with the model's, and verifies its bytes.
    ///
    /// # Panics
    /// If they differ.
    pub fn check(&self) {
        self.compare(&Queries {
            contains: &|hash| self.filter.contains(&at(hash)),
            count: &|hash| self.filter.count(&at(hash)),
            contains_many: &|hashes, found| self.filter.contains_many(&all_at(hashes), found),
            count_many: &|hashes, counts| self.filter.count_many(&all_at(hashes), counts),
            len: self.filter.len(),
            occupancy: self.filter.occupancy(),
        });
        assert_eq!(image::stash(&self.filter.to_bytes()), self.stash, "stash");
        assert_eq!(self.filter.verify(), Ok(()));
        assert_eq!(audit(&self.filter.to_bytes()), Ok(()));
        self.check_sizes();
    }

    pub(super) fn check_view(&self) {
        let bytes = self.filter.to_bytes();
        let view = FilterView::open(&bytes).expect("its own bytes open");
        self.compare(&Queries {
            contains: &|hash| view.contains(&at(hash)),
            count: &|hash| view.count(&at(hash)),
            contains_many: &|hashes, found| view.contains_many(&all_at(hashes), found),
            count_many: &|hashes, counts| view.count_many(&all_at(hashes), counts),
            len: view.len(),
            occupancy: view.occupancy(),
        });
        assert_eq!(view.verify(), Ok::<(), ImageError>(()));
        assert_eq!(view.to_bytes(), bytes);
        assert_eq!(format!("{view:?}"), format!("{:?}", self.filter));
    }

    fn compare(&self, asked: &Queries<'_>) {
        let hashes: Vec<u64> = self.keys.iter().map(|&(hash, _)| hash).collect();
        let (mut found, mut counts) = (vec![false; hashes.len()], vec![0; hashes.len()]);
        (asked.contains_many)(&hashes, &mut found);
        (asked.count_many)(&hashes, &mut counts);
        for (number, &(hash, _)) in (0..=KeyNumber::MAX).zip(&self.keys) {
            let (key, total) = (usize::from(number), self.count(number));
            assert_eq!((asked.contains)(hash), total > 0, "contains, key {key}");
            assert_eq!((asked.count)(hash), total, "count, key {key}");
            assert_eq!((found[key], counts[key]), (total > 0, total), "many, key {key}");
        }
        let len: u64 = self.held.values().flat_map(BTreeMap::values).sum();
        assert_eq!(asked.len, len, "length");
        let in_use: u64 = (0..).zip(asked.occupancy).map(|(held, buckets)| held * buckets).sum();
        assert_eq!(in_use, self.filter.slots_in_use(), "occupancy");
        assert_eq!(asked.occupancy.iter().sum::<u64>(), self.filter.buckets());
    }

    /// One key, passed as the key itself if the case has integer keys.
    pub(super) fn check_key(&self, key: KeyNumber) {
        let (hash, _) = self.keys[usize::from(key)];
        let total = self.count(key);
        assert_eq!(self.filter.contains(&at(hash)), total > 0, "contains, key {key}");
        assert_eq!(self.filter.count(&at(hash)), total, "count, key {key}");
        if self.setup.universe == Universe::Integers {
            assert_eq!(self.filter.contains(&u64::from(key)), total > 0, "contains, key {key}");
            assert_eq!(self.filter.count(&u64::from(key)), total, "count, key {key}");
        }
    }

    /// Slots and counters: each entry in one slot or two, with a counter only where there are
    /// copies to count.
    pub(super) fn check_sizes(&self) {
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

    pub(super) fn check_unchanged(&self, before: &[u8]) {
        assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
    }

    /// Whether there is no room in the stash either, for an insert that found no slot.
    pub(super) fn check_stash_is_full(&self, full: FullError) {
        let beside = self.filter.distinct_counters() + self.filter.stashed_keys();
        let keys = (self.table().len() + self.stash.len()) as u64;
        let is_full = keys >= self.filter.capacity() || beside >= self.filter.counter_limit();
        assert!(is_full || !matches!(full, FullError::Slots { .. }), "{full}");
    }

    /// Whether the reason is true, for an insert after which there would be `distinct` entries.
    pub(super) fn check_refusal(&self, full: FullError, distinct: u64) {
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

/// The queries that filters and views share.
struct Queries<'a> {
    contains: &'a dyn Fn(u64) -> bool,
    count: &'a dyn Fn(u64) -> u64,
    contains_many: &'a dyn Fn(&[u64], &mut [bool]),
    count_many: &'a dyn Fn(&[u64], &mut [u64]),
    len: u64,
    occupancy: [u64; 5],
}
