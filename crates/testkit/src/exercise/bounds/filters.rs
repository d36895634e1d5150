//! The bounds of filters: single keys and batches, corrections, unions, patches, sizes.

use koel::{CuckooFilter, FilterView, FullError, KeyHash, Merge, MergeError, PatchError};

use super::{Bounds, assert_sound, changed, chosen, filling, key};
use crate::exercise::{Hands, is_one_line};
use crate::keys::{self, at};

impl Bounds for CuckooFilter {
    const SERIES: &'static [fn(&Self)] = &[
        |it| Chosen::of(it).singles(it),
        |it| Chosen::of(it).batches(it),
        |it| Chosen::of(it).removals(it),
        corrections,
        |it| Chosen::of(it).unions(it),
        |it| Chosen::of(it).patches(it),
        |it| Chosen::of(it).sizes(it),
        |it| Chosen::of(it).clears(it),
    ];

    fn fill(&mut self) {
        let _full = self.insert_many(&filling());
    }

    /// Corrections stay.
    fn empty(&mut self) {
        self.clear_keys();
    }
}

/// Keys at the bounds of a filter, and whether it reports them.
struct Chosen {
    keys: Vec<KeyHash>,
    are_in: Vec<bool>,
}

impl Chosen {
    fn of(filter: &CuckooFilter) -> Self {
        let keys = chosen(&filter.to_bytes(), filter.trusts_hashes());
        let mut are_in = vec![false; keys.len()];
        filter.contains_many(&keys, &mut are_in);
        Self { keys, are_in }
    }

    /// What was reported still is, and the filter is sound.
    fn check(&self, filter: &CuckooFilter) {
        let reported = self.keys.iter().zip(&self.are_in).filter(|(_, is_in)| **is_in);
        reported.for_each(|(key, _)| assert!(filter.contains(key), "a member is lost"));
        assert_eq!(filter.verify(), Ok(()));
    }

    /// The same after a removal. The last key of a grown table takes along what growth left: all
    /// that the header does not count.
    fn check_removal(&self, filter: &CuckooFilter) {
        if filter.slots_in_use() > 0 {
            self.check(filter);
        }
    }

    /// Inserts each key, and removes it.
    fn singles(&self, it: &CuckooFilter) {
        let mut hands = Hands { keys: Vec::new(), inserted: Vec::new() };
        let mut singles = changed(it, |copy| {
            for key in &self.keys {
                hands.insert(copy, *key);
                hands.insert_unique(copy, *key);
                self.check(copy);
            }
        });
        let inserted = hands.inserted.clone();
        assert!(inserted.iter().all(|key| singles.contains(key)), "a member is lost");
        let mut batch = it.clone();
        if inserted.len() == self.keys.len() {
            assert_eq!(batch.insert_many(&inserted), Ok(()));
            assert!(batch == singles, "a batch differs from single inserts");
        }
        while !hands.inserted.is_empty() {
            hands.remove(&mut singles, 0);
            self.check_removal(&singles);
        }
        assert_sound(&singles);
    }

    /// Inserts and removes the keys that are not in, as batches.
    fn batches(&self, it: &CuckooFilter) {
        changed(it, |copy| {
            let mut added = vec![true; self.keys.len()];
            let done = copy.insert_unique_many(&self.keys, &mut added);
            assert!(done.is_err() || self.keys.iter().all(|key| copy.contains(key)));
            self.check(copy);
            let added =
                self.keys.iter().zip(added).filter_map(|(key, added)| added.then_some(*key));
            let added: Vec<_> = added.collect();
            let mut removed = vec![false; added.len()];
            copy.remove_many(&added, &mut removed);
            assert!(removed.iter().all(|&removed| removed), "an inserted key is not found");
        });
    }

    /// Takes out a copy of each key that is in: of any number, and in the stash.
    fn removals(&self, it: &CuckooFilter) {
        changed(it, |copy| {
            for key in &self.keys {
                let (before, count, len) = (copy.clone(), copy.count(key), copy.len());
                let removed = copy.remove(key);
                assert_eq!(removed, count > 0);
                let less = len.saturating_sub(u64::from(removed));
                assert!(copy.len() == less || copy.has_grown() && copy.len() == len);
                assert!(removed || *copy == before, "a refusal changed the filter");
                assert_eq!(copy.verify(), Ok(()));
            }
        });
    }

    /// Merges with itself, and with an empty twin on either side. A view of the bytes is the same.
    fn unions(&self, it: &CuckooFilter) {
        let mut empty = it.clone();
        empty.clear();
        for counts in [Merge::Sum, Merge::Max] {
            for [into, from] in [[it, it], [it, &empty], [&empty, it]] {
                let bytes = from.to_bytes();
                let (mut union, mut other) = (into.clone(), into.clone());
                let merged = union.merge(from, counts);
                let view = FilterView::open(&bytes).expect("its own bytes");
                assert_eq!(merged, other.merge(&view, counts));
                assert!(union == other, "a view was merged to other bytes");
                match merged {
                    Ok(()) => {
                        self.check(&union);
                        assert_sound(&union);
                    }
                    Err(error) => {
                        assert!(matches!(error, MergeError::Full(_)), "{error}");
                        assert!(union == *into, "a refusal changed the filter");
                    }
                }
            }
        }
    }

    /// Patches to itself, to an empty twin and back, and to itself with more.
    fn patches(&self, it: &CuckooFilter) {
        let (mut empty, mut more) = (it.clone(), it.clone());
        empty.clear();
        let _full = more.insert_many(&self.keys);
        for [old, new] in [[it, it], [it, &empty], [&empty, it], [it, &more], [&more, it]] {
            assert!(old.compare(new).is_ok());
            let patch = match old.patch_to(new) {
                Ok(patch) => patch,
                Err(PatchError::Full(_) | PatchError::Sparse { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let patched = old.patched(&patch).expect("one that was returned");
            assert_sound(&patched);
            assert_eq!((patched.len(), patched.corrections()), (new.len(), new.corrections()));
            assert_eq!(patched.holds_the_same(new), Ok(true));
        }
    }

    /// Makes room for nothing and for everything, grows, and gives the room back.
    fn sizes(&self, it: &CuckooFilter) {
        for additional in [0, 1, u64::MAX] {
            let mut copy = it.clone();
            let reserved = copy.reserve(additional);
            assert!(reserved.is_err() || additional < u64::MAX || it.capacity() == u64::MAX);
            assert!(reserved.is_ok() || it.is_growable() || copy == *it);
            self.check(&copy);
        }
        changed(it, |copy| {
            copy.shrink_to_fit();
            self.check(copy);
            let before = copy.clone();
            match copy.make_growable() {
                Ok(()) => {
                    let inserted: Vec<_> = keys::hashes(41, 40).map(at).collect();
                    if copy.insert_many(&inserted).is_ok() {
                        assert!(inserted.iter().all(|key| copy.contains(key)), "a member is lost");
                    }
                    self.check(copy);
                    assert_sound(copy);
                    copy.shrink_to_fit();
                    self.check(copy);
                }
                Err(error) => assert!(is_one_line(&error.to_string()) && *copy == before),
            }
        });
    }

    /// Clears it, with and without its corrections.
    fn clears(&self, it: &CuckooFilter) {
        changed(it, |copy| {
            copy.clear_keys();
            assert_eq!((copy.len(), copy.corrections()), (0, it.corrections()));
            assert!(!self.keys.iter().any(|key| copy.contains(key)), "a key is left");
        });
        changed(it, |copy| {
            copy.clear();
            assert_eq!((copy.len(), copy.corrections(), copy.slots_in_use()), (0, 0, 0));
        });
    }
}

/// Makes as many corrections as slots, and one more.
fn corrections(it: &CuckooFilter) {
    let first = keys::splitmix64(91) & !0xff;
    let is_full = |full| matches!(full, FullError::Corrections { .. });
    changed(it, |copy| {
        if copy.insert(&key(copy.trusts_hashes(), first)).is_err() {
            return;
        }
        // They share an entry with that key.
        let twins = (1..150).map(|i| key(copy.trusts_hashes(), first + i));
        let twins: Vec<_> = twins.filter(|twin| copy.contains(twin)).collect();
        let room = usize::try_from(copy.slots() - copy.corrections()).expect("few slots");
        let room = room.min(twins.len());
        let (wrong, beyond) = twins.split_at(room);
        assert_eq!(copy.force_refute_many(wrong), Ok(room as u64));
        assert!(wrong.iter().all(|key| !copy.contains(key) && copy.count(key) == 0));
        let full = copy.clone();
        if let Some(one) = beyond.first() {
            assert!(copy.refute(one).is_err_and(is_full));
            assert!(copy.force_refute_many(beyond).is_err_and(is_full));
            assert!(copy.refute_many(beyond).is_err());
        }
        assert_eq!(copy.refute_many(wrong), Ok(0));
        assert!(*copy == full, "a refusal changed the filter");
        assert_sound(copy);
        for key in wrong.iter().take(3) {
            assert!(!copy.remove(key));
            match copy.insert(key) {
                Ok(()) => assert!(copy.contains(key) && copy.corrections() < copy.slots()),
                Err(_) => assert!(!copy.contains(key)),
            }
        }
    });
}
