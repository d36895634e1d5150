//! Names and their numbers. A log has no order of keys, so names are numbered: files are listed by
//! number, without a pass over all chunks.

use super::archive::Archive;
use super::error::ArchiveError;
use super::manifest::{self, Manifest};
use crate::{Durability, Error};

impl Archive {
    /// Removes a file, durably. Returns whether it was there. Its chunks stay until
    /// [`collect`](Self::collect).
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&self, name: &str) -> Result<bool, ArchiveError> {
        let _alone = self.naming.lock();
        let number = match self.find(name) {
            Ok(None) => return Ok(false),
            Ok(Some(manifest)) => Some(manifest.number),
            // A damaged manifest does not tell its number. That number leads to no file then and is
            // ignored.
            Err(ArchiveError::Store(Error::Damaged { .. })) => None,
            Err(error) => return Err(error),
        };
        // In this order: a collection would drop the chunks of a name without a number.
        self.store.delete(&manifest::name_key(name), Durability::None)?;
        if let Some(number) = number {
            self.store.delete(&manifest::number_key(number), Durability::None)?;
        }
        self.store.sync()?;
        Ok(true)
    }

    /// Gives a name the next number.
    pub(super) fn assign_number(&self, name: &str) -> Result<u64, ArchiveError> {
        let number = self.next_number()?;
        let next = number.checked_add(1).ok_or(manifest::INVALID_NEXT_NUMBER)?;
        self.store.put(&manifest::number_key(number), name.as_bytes(), Durability::None)?;
        self.store.put(manifest::NEXT_NUMBER, &next.to_le_bytes(), Durability::None)?;
        Ok(number)
    }

    /// Returns the number that the next new name gets. If its record is damaged, the names tell it.
    pub(super) fn next_number(&self) -> Result<u64, ArchiveError> {
        match self.store.get(manifest::NEXT_NUMBER) {
            Err(Error::Damaged { .. }) => self.free_number(),
            found => found?.map_or(Ok(0), |value| manifest::decode_next_number(&value)),
        }
    }

    /// Returns a number above those of all readable names. O(keys).
    pub(super) fn free_number(&self) -> Result<u64, ArchiveError> {
        let mut free = 0;
        for key in self.store.keys() {
            match key.map_err(ArchiveError::from).and_then(|key| self.number_at(&key)) {
                Ok(number) => free = free.max(number.map_or(0, |number| number.saturating_add(1))),
                Err(ArchiveError::Store(Error::Damaged { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(free)
    }

    /// Returns the number in this key or in its record, if it has one.
    fn number_at(&self, key: &[u8]) -> Result<Option<u64>, ArchiveError> {
        if let Some(number) = manifest::number_in(key) {
            return Ok(Some(number));
        }
        let Some(name) = manifest::name_in(key) else { return Ok(None) };
        Ok(self.find(name)?.map(|manifest| manifest.number))
    }

    /// Returns the manifests of all files with their names, in the order of their numbers.
    pub(super) fn manifests(
        &self,
    ) -> Result<impl Iterator<Item = Result<(String, Manifest), ArchiveError>>, ArchiveError> {
        let numbers = 0..self.next_number()?;
        Ok(numbers.filter_map(|number| self.numbered(number).transpose()))
    }

    /// Returns the file with this number. Returns `None` if it was removed, or its import was
    /// interrupted.
    pub(super) fn numbered(&self, number: u64) -> Result<Option<(String, Manifest)>, ArchiveError> {
        let Some(name) = self.name_of(number)? else { return Ok(None) };
        let manifest = self.find(&name)?.filter(|manifest| manifest.number == number);
        Ok(manifest.map(|manifest| (name, manifest)))
    }

    /// Returns the name with this number.
    pub(super) fn name_of(&self, number: u64) -> Result<Option<String>, ArchiveError> {
        let name = self.store.get(&manifest::number_key(number))?.map(String::from_utf8);
        name.transpose().map_err(|_| ArchiveError::Record { what: "a name" })
    }
}
