//! Second copies of what a folder is read by: its chunks and lists, and the record of its version.
//!
//! A lost sector takes a few files; without copies, one in a listing takes all that the folder has.
//! A copy has the key of the original with the upper-case letter. It is read when the original
//! cannot be.
//!
//! **Distance.** What is lost at once is next to one another: a sector, or a stripe of 64 KiB.
//! Copies are written at the end of an import, after a *gap*:
//!
//! ```text
//! .. chunks and lists of folders ..  V number | g number: 64 KiB | copies of them ..  v number
//! ```
//!
//! A compaction keeps the order of the log and drops only what is dead. So an original and its copy
//! stay apart as long as the gap lives, which is as long as one of the hashes in it is named. An
//! import that changes no folder writes none of this.
//!
//! **Healing.** An import looks at the original and the copy of all that it stores, and writes the
//! copy again, after a new gap, if either was damaged. A collection that met damage does so for all
//! that versions name, and for what lost its gap.

use std::collections::{BTreeSet, HashSet};

use super::Archive;
use super::entry::Kind;
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::read::Chunks;
use crate::{Durability, Error};

/// Chunks and lists of folders: the letter of the key of each, and its hash.
pub(super) type Parts = BTreeSet<(u8, Hash)>;

impl Archive {
    /// Writes the copies of these parts after a gap with this number. `before` is called for what
    /// comes before the gap. Does nothing if there are no parts.
    pub(super) fn write_copies(
        &self,
        number: u64,
        mut parts: Parts,
        before: impl FnOnce() -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        if parts.is_empty() {
            return Ok(());
        }
        before()?;
        // An import that failed may have used the number. Its gap is replaced, so its copies are.
        parts.extend(self.parts_of_gap(number).ok().flatten().unwrap_or_default());
        let store = &self.store;
        store.put(&keys::gap_key(number), &keys::encode_gap(&parts), Durability::None)?;
        for (kind, hash) in parts {
            let copy = keys::key(kind.to_ascii_uppercase(), &hash);
            match store.get(&keys::key(kind, &hash)) {
                Ok(Some(value)) => store.put(&copy, &value, Durability::None)?,
                // The part is stored in another way.
                Ok(None) | Err(Error::Damaged { .. }) => {
                    store.delete(&copy, Durability::None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns the parts whose copies are after a gap, or `None` if there is no such gap.
    fn parts_of_gap(&self, number: u64) -> Result<Option<Parts>, Error> {
        Ok(self.store.get(&keys::gap_key(number))?.map(|value| keys::decode_gap(&value)))
    }

    /// Returns whether a record of this module belongs to nothing: a gap of which no part is named,
    /// or the copy of a version that is not there.
    pub(super) fn is_unused_copy(
        &self,
        key: &[u8],
        is_named: impl Fn(&Hash) -> bool,
    ) -> Result<bool, Error> {
        if let Some(number) = keys::gap_number_in(key) {
            let parts = self.parts_of_gap(number)?.unwrap_or_default();
            return Ok(!parts.iter().any(|(_, hash)| is_named(hash)));
        }
        let Some(number) = keys::copied_number_in(key) else { return Ok(false) };
        let version = self.store.get(&keys::version_key(number));
        Ok(matches!(version, Ok(None)))
    }

    /// Makes good what is damaged of an original or its copy, of the versions with these numbers:
    /// from the other one. What has no sound gap between the two is copied again.
    pub(super) fn heal_copies(&self, numbers: &[u64]) -> Result<(), ArchiveError> {
        let (mut hurt, mut apart) = (Vec::new(), Parts::new());
        for &number in numbers {
            self.heal_version(number)?;
            match self.parts_of_gap(number) {
                Ok(parts) if !self.is_damaged(&keys::version_copy_key(number))? => {
                    apart.extend(parts.unwrap_or_default());
                }
                Ok(_) | Err(Error::Damaged { .. }) => hurt.push(number),
                Err(error) => return Err(error.into()),
            }
        }
        let mut parts = Parts::new();
        for part in self.parts_of_folders(numbers)? {
            if self.heal_part(part)? || !apart.contains(&part) {
                parts.insert(part);
            }
        }
        let next = self.next_number()?;
        if !parts.is_empty() {
            let after = next.checked_add(1).ok_or(keys::INVALID_NEXT_NUMBER)?;
            let value = keys::encode_next_number(after);
            self.store.put(keys::NEXT_NUMBER, &value, Durability::None)?;
        }
        for number in &hurt {
            self.store.delete(&keys::gap_key(*number), Durability::None)?;
        }
        let is_needed = !parts.is_empty();
        self.write_copies(next, parts, || Ok(()))?;
        for number in hurt {
            let copy = keys::version_copy_key(number);
            match self.store.get(&keys::version_key(number))?.filter(|_| is_needed) {
                Some(value) => self.store.put(&copy, &value, Durability::None)?,
                None => drop(self.store.delete(&copy, Durability::None)?),
            }
        }
        Ok(())
    }

    fn is_damaged(&self, key: &[u8]) -> Result<bool, Error> {
        match self.store.get(key) {
            Err(Error::Damaged { .. }) => Ok(true),
            found => found.map(|_| false),
        }
    }

    /// Writes the record of a version again, if only its copy is sound.
    fn heal_version(&self, number: u64) -> Result<(), ArchiveError> {
        let key = keys::version_key(number);
        if self.is_damaged(&key)?
            && let Some(value) = self.copy_of_version(number)
        {
            self.store.put(&key, &value, Durability::None)?;
        }
        Ok(())
    }

    /// Writes a part again, if only its copy is sound. Returns whether there are not two sound
    /// records that were written before.
    fn heal_part(&self, (kind, hash): (u8, Hash)) -> Result<bool, ArchiveError> {
        let (key, copy) = (keys::key(kind, &hash), keys::key(kind.to_ascii_uppercase(), &hash));
        let original = self.store.get(&key);
        if let Ok(Some(_)) = original {
            return Ok(!matches!(self.store.get(&copy), Ok(Some(_))));
        }
        if let Ok(Some(value)) = self.store.get(&copy) {
            self.store.put(&key, &value, Durability::None)?;
        }
        Ok(true)
    }

    /// Returns the chunks and lists of all folders in these versions, as they are stored.
    fn parts_of_folders(&self, numbers: &[u64]) -> Result<Parts, ArchiveError> {
        let (mut parts, mut seen) = (Parts::new(), HashSet::new());
        let is_stored =
            |kind: u8, hash: &Hash| !matches!(self.store.get(&keys::key(kind, hash)), Ok(None));
        for &number in numbers {
            let Some(version) = self.stored_version(number)? else { continue };
            self.walk(&version.name, &version.entry, &mut |path, entry| {
                let Kind::Folder(folder) = entry.kind else { return Ok(false) };
                if !seen.insert((folder.content.height, folder.content.root)) {
                    return Ok(false);
                }
                Chunks::new(self, path, folder.content).each_hash(|hash| {
                    for kind in [b'c', b'z', b'l'] {
                        if is_stored(kind, hash) || is_stored(kind.to_ascii_uppercase(), hash) {
                            parts.insert((kind, *hash));
                        }
                    }
                    Ok(())
                })?;
                Ok(true)
            })?;
        }
        Ok(parts)
    }
}
