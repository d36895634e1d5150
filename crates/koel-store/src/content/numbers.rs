//! The numbers of versions: the next one, and those that may be in use.
//!
//! The next number is known from its own record, or else from the spare copy of the newest version
//! (spare.rs). If both are unreadable, a pass over all keys finds the versions that are readable,
//! and looking up the numbers around them those whose record is damaged. Then the list may lack
//! versions, and says so with the damage.

use std::collections::BTreeSet;

use super::archive::Archive;
use super::error::ArchiveError;
use super::keys;
use crate::Error;

/// Numbers that are tried one by one, however few of them are in use.
const FEW: u64 = 1 << 20;

/// How many numbers after the last readable one are looked up for damaged records.
const AHEAD: u64 = 4096;

/// The numbers that versions may have.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Ascending.
    pub(super) all: Vec<u64>,
    /// Why some may be missing.
    pub(super) damage: Option<ArchiveError>,
}

impl Archive {
    /// Returns the number that the next version gets.
    pub(super) fn next_number(&self) -> Result<u64, ArchiveError> {
        match self.known_next() {
            Err(error) if error.is_damage() => self.free_number(),
            known => known,
        }
    }

    /// Returns the next number from its record, or from the spare copy of the newest version.
    fn known_next(&self) -> Result<u64, ArchiveError> {
        let recorded = match self.store.get(keys::NEXT_NUMBER) {
            Ok(Some(value)) => return keys::decode_next_number(&value),
            Ok(None) => Ok(1),
            Err(error @ Error::Damaged { .. }) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        match self.spare() {
            Ok(Some(spare)) => Ok(spare.number.saturating_add(1)),
            _ => recorded,
        }
    }

    /// Returns all numbers that a version may have.
    ///
    /// They are counted, without a pass over all keys, unless hardly any could be in use: a made-up
    /// next number must not decide how long this takes.
    pub(super) fn numbers(&self) -> Result<Numbers, ArchiveError> {
        let damage = match self.known_next() {
            Ok(next) if next <= FEW.max(self.store.stats().keys) => {
                return Ok(Numbers { all: (1..next).collect(), damage: None });
            }
            Ok(_) => None,
            Err(error) if error.is_damage() => Some(error),
            Err(error) => return Err(error),
        };
        let mut found = self.search_numbers()?;
        found.damage = damage.or(found.damage);
        Ok(found)
    }

    /// Returns a number above those of all versions that are found. O(keys).
    pub(super) fn free_number(&self) -> Result<u64, ArchiveError> {
        let last = self.search_numbers()?.all.last().copied().unwrap_or(0);
        Ok(last.saturating_add(1))
    }

    /// Returns the numbers of all readable versions and lists, and of damaged versions near them.
    fn search_numbers(&self) -> Result<Numbers, ArchiveError> {
        let (mut numbers, mut damage) = (BTreeSet::new(), None);
        for key in self.store.keys() {
            let noted = key.map_err(ArchiveError::from).and_then(|key| {
                numbers.extend(keys::number_in(&key));
                if let Some(name) = keys::name_in(&key) {
                    numbers.extend(self.stored_numbers_of(name)?.unwrap_or_default());
                }
                Ok(())
            });
            match noted {
                Err(error) if !error.is_damage() => return Err(error),
                Err(error) => damage = Some(error),
                Ok(()) => {}
            }
        }
        if damage.is_some() {
            let end = numbers.last().copied().unwrap_or(0).saturating_add(AHEAD);
            let is_damaged = |number: &u64| {
                matches!(self.store.get(&keys::version_key(*number)), Err(Error::Damaged { .. }))
            };
            let first = end.saturating_sub(FEW).max(1);
            numbers.extend((first..=end).filter(is_damaged));
        }
        Ok(Numbers { all: numbers.into_iter().collect(), damage })
    }
}
