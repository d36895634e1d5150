//! Operations on maplets and counting filters of unknown content, like
//! [`exercise`](crate::exercise) for filters. An inserted pair is found until it is removed, and no
//! count falls below what was added.

use std::collections::BTreeMap;

use koel::{
    CountingFilter, CountingView, FullError, ImageError, Maplet, MapletView, Merge, MergeError,
    Values,
};

use crate::exercise::{Subject, asked, assert_same_table, assert_small, index, is_one_line};
use crate::keys;
use crate::keys::at;

/// The number of hashes in use.
const HASHES: u64 = 40;

impl Subject for Maplet {
    const READ: fn(&[u8]) -> Result<Self, ImageError> = Self::from_bytes;
    const WRITE: fn(&Self) -> Vec<u8> = Self::to_bytes;
    const VERIFY: fn(&Self) -> Result<(), ImageError> = Self::verify;

    fn question(bytes: &[u8]) -> Result<(), ImageError> {
        let view = MapletView::open(bytes)?;
        let keys = asked();
        let mut values = vec![Values::default(); keys.len()];
        view.get_many(&keys, &mut values);
        let verified = view.verify();
        for (key, values) in keys.iter().zip(values) {
            let found = values.count();
            assert_eq!(view.get(key).count(), found);
            assert!(found as u64 <= 8 + view.stashed_pairs(), "{found} values of a key");
            // A pair in the stash without a copy is no pair to one, and one to the other.
            assert!(view.contains(key) == (found > 0) || verified.is_err());
        }
        assert!(view.entries().count() as u64 <= view.slots());
        verified
    }

    fn exercise(&mut self, _: u64, choices: impl Iterator<Item = u64>) {
        let mut inserted: Vec<(u64, u64)> = Vec::new();
        let most = u64::MAX >> (64 - self.layout().value_bits());
        for choice in choices {
            let hash = keys::splitmix64((choice >> 8) % HASHES);
            let value = (choice >> 32) % 5 * (most / 4);
            let len = self.len();
            match choice % 8 {
                0..5 => match self.insert(&at(hash), value) {
                    Ok(()) => {
                        assert_eq!(self.len(), len + 1);
                        inserted.push((hash, value));
                    }
                    Err(full) => assert!(is_one_line(&full.to_string()) && self.len() == len),
                },
                5 if !inserted.is_empty() => {
                    let (hash, value) = inserted.swap_remove(index(choice >> 40, inserted.len()));
                    assert!(self.remove(&at(hash), value), "an inserted pair is not found");
                    assert_eq!(self.len(), len - 1);
                }
                6 => {
                    if let Some((hash, old)) = inserted.last_mut() {
                        assert_eq!(self.replace(&at(*hash), *old, value), Ok(true));
                        *old = value;
                    }
                }
                _ if choice % 16 == 7 => self.shrink_to_fit(),
                _ => *self = Self::from_bytes(&self.to_bytes()).expect("its own bytes"),
            }
        }
        for &(hash, value) in &inserted {
            assert!(self.get(&at(hash)).any(|found| found == value), "an inserted pair is gone");
        }
    }
}

impl Subject for CountingFilter {
    const READ: fn(&[u8]) -> Result<Self, ImageError> = Self::from_bytes;
    const WRITE: fn(&Self) -> Vec<u8> = Self::to_bytes;
    const VERIFY: fn(&Self) -> Result<(), ImageError> = Self::verify;

    fn question(bytes: &[u8]) -> Result<(), ImageError> {
        let view = CountingView::open(bytes)?;
        let keys = asked();
        let mut counts = vec![0; keys.len()];
        view.count_many(&keys, &mut counts);
        assert!(keys.iter().zip(counts).all(|(key, count)| view.count(key) == count));
        view.counts().for_each(drop);
        view.verify()
    }

    fn exercise(&mut self, _: u64, choices: impl Iterator<Item = u64>) {
        let mut inserted: BTreeMap<u64, u64> = BTreeMap::new();
        for choice in choices {
            let hash = keys::splitmix64((choice >> 8) % HASHES);
            let times = if choice % 3 == 0 { (choice >> 32) % 1000 } else { 1 };
            let len = self.len();
            match choice % 8 {
                0..5 => match self.add(&at(hash), times) {
                    Ok(count) => {
                        assert!(count >= times && self.count(&at(hash)) == count);
                        assert_eq!(self.len(), len + times);
                        *inserted.entry(hash).or_default() += times;
                    }
                    Err(full) => {
                        assert!(is_one_line(&full.to_string()) && self.len() == len);
                        assert!(full == FullError::Overflow || !self.contains(&at(hash)));
                    }
                },
                5 | 6 => {
                    if let Some(count) = inserted.get_mut(&hash).filter(|count| **count > 0) {
                        assert!(self.remove(&at(hash)), "an inserted key is not found");
                        assert_eq!(self.len(), len - 1);
                        *count -= 1;
                    }
                }
                _ if choice % 16 == 7 => merge_with_itself(self, hash),
                _ if choice % 32 == 15 => self.shrink_to_fit(),
                _ => *self = Self::from_bytes(&self.to_bytes()).expect("its own bytes"),
            }
        }
        assert!(inserted.iter().all(|(&hash, &count)| self.count(&at(hash)) >= count), "too low");
    }
}

/// Merges the filter with itself: the maximum changes nothing, unless more than half of the copies
/// that can be counted are in; the sum is at least twice as large, or does not fit.
fn merge_with_itself(filter: &mut CountingFilter, hash: u64) {
    let (twin, count) = (filter.clone(), filter.count(&at(hash)));
    match filter.merge(&twin, Merge::Max) {
        Ok(()) => {
            assert_same_table([&twin.to_bytes(), &filter.to_bytes()], twin.has_grown());
            assert!(filter.len() >= twin.len());
        }
        Err(failure) => {
            assert_eq!(failure, MergeError::Full(FullError::Overflow));
            assert!(*filter == twin && twin.len() > u64::MAX / 2);
        }
    }
    *filter = twin.clone();
    match filter.merge(&twin, Merge::Sum) {
        Ok(()) => assert!(filter.count(&at(hash)) >= count.saturating_mul(2)),
        Err(_) => assert!(*filter == twin, "a refusal changed the filter"),
    }
    assert_small(filter.size_in_bytes());
    assert_eq!(filter.verify(), Ok(()));
    *filter = twin;
}
