//! Repairing the lists of versions, after some of them were lost.
//!
//! A version is found by the list of its name. In a salvaged store that list may be missing, or
//! name a version that is missing, and the record of the next number may be missing or old. The
//! readable versions tell their names and which numbers are in use.

use std::collections::BTreeMap;

use super::archive::Archive;
use super::error::ArchiveError;
use super::keys;
use crate::Durability;
use crate::kernel::threads::lock;

impl Archive {
    /// Makes sure that every name lists its readable versions and no others, and that the next
    /// version gets an unused number. Returns how many names had another list.
    ///
    /// To be called after [`LogStore::salvage`](crate::LogStore::salvage), before anything else. An
    /// archive that lost nothing is not changed. O(keys).
    ///
    /// # Errors
    /// Those of the store.
    pub fn repair(&self) -> Result<u64, ArchiveError> {
        let mut known = lock(&self.known_names);
        *known = None;
        let next = self.next_number()?.max(self.free_number()?);
        let value = keys::encode_next_number(next);
        if self.store.get(keys::NEXT_NUMBER).ok().flatten().as_ref() != Some(&value) && next > 1 {
            self.store.put(keys::NEXT_NUMBER, &value, Durability::None)?;
        }
        self.restore_lost_version()?;
        let mut repaired = 0;
        for (name, versions) in self.versions_by_name()? {
            if self.stored_numbers_of(&name)?.unwrap_or_default() == versions {
                continue;
            }
            repaired += 1;
            let key = keys::name_key(&name);
            if versions.is_empty() {
                self.store.delete(&key, Durability::None)?;
            } else {
                self.store.put(&key, &keys::encode_numbers(&versions), Durability::None)?;
            }
        }
        self.store.sync()?;
        Ok(repaired)
    }

    /// Returns all names, each with its readable versions.
    fn versions_by_name(&self) -> Result<BTreeMap<Vec<u8>, Vec<u64>>, ArchiveError> {
        let mut versions: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for key in self.store.keys() {
            let key = key?;
            if let Some(name) = keys::name_in(&key) {
                versions.entry(name.to_owned()).or_default();
            } else if let Some(number) = keys::number_in(&key)
                && let Some(version) = self.stored_version(number)?
            {
                versions.entry(version.name).or_default().push(number);
            }
        }
        versions.values_mut().for_each(|numbers| numbers.sort_unstable());
        Ok(versions)
    }
}
