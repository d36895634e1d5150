//! The numbers of versions: the next one, and those that may be in use.

use super::archive::Archive;
use super::error::ArchiveError;
use super::keys;
use crate::Error;

/// Numbers that are tried one by one, however few of them are in use.
const FEW: u64 = 1 << 20;

impl Archive {
    /// Returns the number that the next version gets. If its record is damaged, the versions and
    /// the names tell.
    pub(super) fn next_number(&self) -> Result<u64, ArchiveError> {
        match self.store.get(keys::NEXT_NUMBER) {
            Err(Error::Damaged { .. }) => self.free_number(),
            found => found?.map_or(Ok(1), |value| keys::decode_next_number(&value)),
        }
    }

    /// Returns all numbers that a version may have, ascending.
    ///
    /// They are counted, without a pass over all keys, unless hardly any could be in use: a made-up
    /// next number must not decide how long this takes.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, ArchiveError> {
        let next = self.next_number()?;
        if next <= FEW.max(self.store.stats().keys) {
            return Ok((1..next).collect());
        }
        let mut numbers = Vec::new();
        self.each_key(|key| {
            numbers.extend(keys::number_in(key));
            Ok(())
        })?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns a number above those of all readable versions and names. O(keys).
    pub(super) fn free_number(&self) -> Result<u64, ArchiveError> {
        let mut last = 0;
        self.each_key(|key| {
            if let Some(number) = keys::number_in(key) {
                last = last.max(number);
            } else if let Some(name) = keys::name_in(key) {
                last = last
                    .max(self.numbers_of(name)?.and_then(|all| all.last().copied()).unwrap_or(0));
            }
            Ok(())
        })?;
        Ok(last.saturating_add(1))
    }

    /// Calls `visit` with every readable key of the store. Skips damage.
    pub(super) fn each_key(
        &self,
        mut visit: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        for key in self.store.keys() {
            match key.map_err(ArchiveError::from).and_then(|key| visit(&key)) {
                Err(error) if !error.is_damage() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
