//! Names and their numbers put right, where some were lost.
//!
//! A file is listed by its number, and a collection drops the chunks of what is not listed. In a store that was salvaged, the record of a number may be missing, or that of the next number may be missing or an older one. The
//! manifests tell which numbers there are, and so do the keys of all numbers.

use super::manifest;
use super::{Archive, ArchiveError};
use crate::Durability;

impl Archive {
    /// Lists every file again that has a manifest, and lets the next new name have a number of its own: how many files were not listed. To be called after [`LogStore::salvage`](crate::LogStore::salvage), and before anything
    /// else; an archive that lost nothing stays as it is. O(keys).
    ///
    /// # Errors
    /// Those of the store.
    pub fn mend(&self) -> Result<u64, ArchiveError> {
        let _alone = self.naming.lock();
        let (mut names, mut next) = (Vec::new(), self.next_number()?);
        for key in self.store.keys() {
            let key = key?;
            names.extend(manifest::name_in(&key).map(str::to_owned));
            next = manifest::number_in(&key).map_or(next, |number| next.max(number + 1));
        }
        for name in &names {
            next = self.find(name)?.map_or(next, |manifest| next.max(manifest.number + 1));
        }
        if next > self.next_number()? {
            self.store.put(manifest::NEXT_NUMBER, &next.to_le_bytes(), Durability::None)?;
        }
        let mut mended = 0;
        for name in &names {
            mended += u64::from(self.list_again(name)?);
        }
        self.store.sync()?;
        Ok(mended)
    }

    /// Gives a file a number that leads to it, if its own does not: whether that was so.
    fn list_again(&self, name: &str) -> Result<bool, ArchiveError> {
        let Some(mut manifest) = self.find(name)? else { return Ok(false) };
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
