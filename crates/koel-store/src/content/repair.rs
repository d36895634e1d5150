//! Repairing names and their numbers, after some of them were lost.
//!
//! A file is listed by its number, and a collection drops the chunks of unlisted files. In a
//! salvaged store the record of a number may be missing, and that of the next number may be missing
//! or old. The readable names and manifests tell which numbers are in use. A number in neither
//! leads to no file, and may be assigned again.

use super::archive::Archive;
use super::error::ArchiveError;
use super::manifest::{self, Manifest};
use crate::Durability;

impl Archive {
    /// Lists every file that has a manifest, and makes sure that the next new name gets an unused
    /// number. Returns how many files were not listed.
    ///
    /// To be called after [`LogStore::salvage`](crate::LogStore::salvage), before anything else. An
    /// archive that lost nothing is not changed. O(keys).
    ///
    /// # Errors
    /// Those of the store.
    pub fn repair(&self) -> Result<u64, ArchiveError> {
        let _alone = self.naming.lock();
        let next = self.free_number()?;
        if next > self.next_number()? {
            self.store.put(manifest::NEXT_NUMBER, &next.to_le_bytes(), Durability::None)?;
        }
        let mut repaired = 0;
        for key in self.store.keys() {
            let key = key?;
            let Some(name) = manifest::name_in(&key) else { continue };
            if let Some(manifest) = self.find(name)? {
                repaired += u64::from(self.list_again(name, manifest)?);
            }
        }
        self.store.sync()?;
        Ok(repaired)
    }

    /// Gives a file a number that leads to it, if its own does not. Returns whether that was so.
    fn list_again(&self, name: &str, mut manifest: Manifest) -> Result<bool, ArchiveError> {
        match self.name_of(manifest.number)? {
            Some(other) if other == name => return Ok(false),
            Some(_) => {
                manifest.number = self.assign_number(name)?;
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
