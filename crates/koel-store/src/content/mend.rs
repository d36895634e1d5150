//! Names and their numbers put right, where some were lost.
//!
//! A file is listed by its number, and a collection drops the chunks of what is not listed. In a store that was salvaged, the record of a number may be missing, or that of the next number may be missing or an older one. The
//! names and manifests that can be read tell which numbers are in use; one that is in neither leads to no file, and may be given again.

use super::manifest::{self, Manifest};
use super::{Archive, ArchiveError};
use crate::{Durability, Error};

impl Archive {
    /// Lists every file again that has a manifest, and lets the next new name have a number of its own: how many files were not listed. To be called after [`LogStore::salvage`](crate::LogStore::salvage), and before anything
    /// else; an archive that lost nothing stays as it is. O(keys).
    ///
    /// # Errors
    /// Those of the store.
    pub fn mend(&self) -> Result<u64, ArchiveError> {
        let _alone = self.naming.lock();
        let next = self.free_number()?;
        if next > self.next_number()? {
            self.store.put(manifest::NEXT_NUMBER, &next.to_le_bytes(), Durability::None)?;
        }
        let mut mended = 0;
        for key in self.store.keys() {
            let key = key?;
            let Some(name) = manifest::name_in(&key) else { continue };
            if let Some(manifest) = self.find(name)? {
                mended += u64::from(self.list_again(name, manifest)?);
            }
        }
        self.store.sync()?;
        Ok(mended)
    }

    /// A number above those of all names that can be read. O(keys).
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

    /// The number of the name that this key or its record leads to.
    fn number_at(&self, key: &[u8]) -> Result<Option<u64>, ArchiveError> {
        if let Some(number) = manifest::number_in(key) {
            return Ok(Some(number));
        }
        let Some(name) = manifest::name_in(key) else { return Ok(None) };
        Ok(self.find(name)?.map(|manifest| manifest.number))
    }

    /// Gives a file a number that leads to it, if its own does not: whether that was so.
    fn list_again(&self, name: &str, mut manifest: Manifest) -> Result<bool, ArchiveError> {
        match self.name_of(manifest.number)? {
            Some(other) if other == name => return Ok(false),
            Some(_) => {
                manifest.number = self.number(name)?;
                let key = manifest::name_key(name);
                self.store.put(&key, &manifest.encode(), Durability::None)?;
            }
            None => {
                let key = manifest::number_key(manifest.number);
                self.store.put(&key, name.as_bytes(), Durability::None)?;
            }
        }
        Ok(true)
    }
}
