//! Adding and removing versions, each in one batch; removing what is inside them; repairing their
//! lists after some of them were lost.
//!
//! A version is found by the list of its name. In a salvaged store that list may be missing, or
//! name a version that is missing, and the record of the next number may be missing or old. The
//! readable versions tell their names and which numbers are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::copies::Parts;
use super::entry::{Entry, Kind, StoredFolder, Time};
use super::error::ArchiveError;
use super::import::Writer;
use super::read::{Listing, no_such_name};
use super::versions::{Spare, Version};
use super::{Archive, keys, names};
use crate::kernel::threads::lock;
use crate::{Batch, Durability};

impl Archive {
    /// Adds a version to a name, after copies of these parts of its folders. Returns its number.
    ///
    /// A damaged list of versions is written again. A newest version with a damaged record is
    /// dropped: nothing can be restored from it.
    pub(super) fn commit(
        &self,
        (name, time, entry): (&[u8], Time, &Entry),
        source: Option<&Path>,
        parts: Parts,
        durability: Durability,
    ) -> Result<u64, ArchiveError> {
        let mut known = lock(&self.known_names);
        let mut numbers = self.readable_numbers(name)?;
        if numbers.is_empty() {
            self.check_new_name(&mut known, name)?;
        }
        let next = self.next_number()?;
        let source =
            source.filter(|path| self.name_of_source(path).ok().flatten().as_deref() != Some(name));
        let after = next.checked_add(1).ok_or(keys::INVALID_NEXT_NUMBER)?;
        let mut dropped = None;
        if let Some(newest) = numbers.last().copied() {
            let stored = self.stored_version(newest);
            if stored.as_ref().is_err_and(ArchiveError::is_damage) {
                dropped = numbers.pop();
            } else {
                stored?;
            }
        }
        numbers.push(next);
        let spare = Spare { number: next, value: Version::encode(time, name, entry) };
        let changes = |batch: &mut Batch| {
            if let Some(dropped) = dropped {
                batch
                    .delete(&keys::version_key(dropped))?
                    .delete(&keys::version_copy_key(dropped))?;
            }
            batch.put(&keys::version_key(next), &spare.value)?;
            batch.put(&keys::name_key(name), &keys::encode_numbers(&numbers))?;
            if let Some(source) = source {
                batch.put(&keys::source_key(source), name)?;
            }
            Ok(())
        };
        self.write_copies(next, parts, || self.put_copy_of(&spare))?;
        self.write_after_spare(&spare, after, changes, durability)?;
        if let Some(known) = &mut *known {
            known.insert(name.to_owned());
        }
        Ok(next)
    }

    /// Fails if a new name is inside another one, or another one is inside it.
    fn check_new_name(
        &self,
        known: &mut Option<BTreeSet<Vec<u8>>>,
        name: &[u8],
    ) -> Result<(), ArchiveError> {
        let known = match known {
            Some(known) => known,
            None => known.insert(self.all_names()?),
        };
        let below = names::join(name, b"");
        let inside = known.range(below.clone()..).next().filter(|other| other.starts_with(&below));
        let other = match inside {
            Some(inside) => Some(inside.clone()),
            None => match name.iter().rposition(|byte| *byte == b'/') {
                Some(end) => self.name_above(&name[..end])?,
                None => None,
            },
        };
        other.map_or(Ok(()), |other| Err(ArchiveError::Overlap { name: name.to_owned(), other }))
    }

    fn all_names(&self) -> Result<BTreeSet<Vec<u8>>, ArchiveError> {
        Ok(self.readable_versions()?.map(|version| version.name).collect())
    }

    /// Returns the numbers of the versions of a name. If its list is damaged, the versions tell.
    fn readable_numbers(&self, name: &[u8]) -> Result<Vec<u64>, ArchiveError> {
        let listed = self.numbers_of(name);
        if !listed.as_ref().is_err_and(ArchiveError::is_damage) {
            return Ok(listed?.unwrap_or_default());
        }
        let of_name = self.readable_versions()?.filter(|version| version.name == name);
        Ok(of_name.map(|version| version.number).collect())
    }

    /// Returns the versions whose records are not damaged.
    fn readable_versions(&self) -> Result<impl Iterator<Item = Version>, ArchiveError> {
        let stored = self.numbers()?.all.into_iter().map(|number| self.stored_version(number));
        let readable = stored.filter(|it| !it.as_ref().is_err_and(ArchiveError::is_damage));
        Ok(readable.collect::<Result<Vec<_>, _>>()?.into_iter().flatten())
    }

    /// Removes a name with all its versions, durably. Returns whether it was there. The chunks stay
    /// until [`collect`](Self::collect).
    ///
    /// # Errors
    /// [`ArchiveError::Inside`] if the path is inside a name:
    /// [`remove_inside`](Self::remove_inside) removes that. Those of the store.
    pub fn remove(&self, name: impl AsRef<[u8]>) -> Result<bool, ArchiveError> {
        let name = name.as_ref();
        if self.retain(name, |_| false)?.is_some() {
            return Ok(true);
        }
        match self.find(name) {
            Ok((version, _)) => {
                Err(ArchiveError::Inside { name: name.to_owned(), top: version.name })
            }
            Err(ArchiveError::NoSuchName { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes all versions of a name but the newest `keep`, durably. Returns how many were
    /// removed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::LogStore;
    /// use koel_store::content::{Archive, Chunking};
    ///
    /// let archive = Archive::new(LogStore::open(folder.path())?);
    /// for text in ["one", "two", "three"] {
    ///     archive.import("notes", text.as_bytes(), Chunking::default())?;
    /// }
    /// assert_eq!(archive.keep_newest("notes", 1)?, 2);
    /// assert_eq!(archive.versions()?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], and those of the store.
    pub fn keep_newest(&self, name: impl AsRef<[u8]>, keep: u64) -> Result<u64, ArchiveError> {
        let name = name.as_ref();
        let mut left = self.readable_numbers(name)?.len() as u64;
        let removed = self.retain(name, |_| {
            left = left.saturating_sub(1);
            left < keep
        })?;
        removed.ok_or_else(|| no_such_name(name))
    }

    /// Removes one version of a name, durably. Returns whether it was there.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], and those of the store.
    pub fn remove_version(
        &self,
        name: impl AsRef<[u8]>,
        number: u64,
    ) -> Result<bool, ArchiveError> {
        let name = name.as_ref();
        let removed = self.retain(name, |other| other != number)?;
        Ok(removed.ok_or_else(|| no_such_name(name))? > 0)
    }

    /// Removes the versions of a name for which `keep` returns `false`, durably. Returns how many,
    /// or `None` if there is no such name.
    fn retain(
        &self,
        name: &[u8],
        mut keep: impl FnMut(u64) -> bool,
    ) -> Result<Option<u64>, ArchiveError> {
        let mut known = lock(&self.known_names);
        if matches!(self.stored_numbers_of(name), Ok(None)) {
            return Ok(None);
        }
        let numbers = self.readable_numbers(name)?;
        let (kept, removed): (Vec<u64>, Vec<u64>) =
            numbers.into_iter().partition(|number| keep(*number));
        let mut batch = Batch::new();
        for number in &removed {
            batch.delete(&keys::version_key(*number))?.delete(&keys::version_copy_key(*number))?;
        }
        self.remove_spare_of(&removed, &mut batch)?;
        if kept.is_empty() {
            batch.delete(&keys::name_key(name))?;
            if let Some(known) = &mut *known {
                known.remove(name);
            }
        } else {
            batch.put(&keys::name_key(name), &keys::encode_numbers(&kept))?;
        }
        self.store.write(&batch, Durability::Synced)?;
        Ok(Some(removed.len() as u64))
    }
}

impl Archive {
    /// Removes what is inside a name from all versions of that name, durably. Returns from how
    /// many.
    ///
    /// The folders above it are written anew; the versions keep their numbers and times.
    ///
    /// # Errors
    /// [`ArchiveError::Broken`] if a list of files is damaged, and those of the store.
    pub fn remove_inside(&self, path: impl AsRef<[u8]>) -> Result<u64, ArchiveError> {
        let path = path.as_ref();
        let _no_collection = self.chunks_in_use.read();
        let _alone = lock(&self.known_names);
        let Some(name) = self.name_above(path)? else { return Ok(0) };
        let Some(inside) = path.get(name.len() + 1..) else { return Ok(0) };
        let components: Vec<&[u8]> = inside.split(|byte| *byte == b'/').collect();
        let mut writer = Writer::new(self);
        let mut changed = Vec::new();
        for number in self.numbers_of(&name)?.unwrap_or_default() {
            let Some(mut version) = self.stored_version(number)? else { continue };
            let Kind::Folder(folder) = version.entry.kind else { continue };
            if let Some(folder) = self.without(&mut writer, &name, folder, &components)? {
                version.entry.kind = Kind::Folder(folder);
                let value = Version::encode(version.time, &name, &version.entry);
                changed.push(Spare { number, value });
            }
        }
        self.replace_versions(&changed, writer.parts)?;
        Ok(changed.len() as u64)
    }

    /// Replaces the records of versions, durably, after copies of these parts of their folders.
    fn replace_versions(&self, changed: &[Spare], parts: Parts) -> Result<(), ArchiveError> {
        let mut next = self.next_number()?;
        if !parts.is_empty() {
            let gap = next;
            next = next.checked_add(1).ok_or(keys::INVALID_NEXT_NUMBER)?;
            self.write_copies(gap, parts, || {
                changed.iter().try_for_each(|version| self.put_copy_of(version))
            })?;
        }
        let put_all = |batch: &mut Batch| {
            changed.iter().try_for_each(|version| {
                batch.put(&keys::version_key(version.number), &version.value)?;
                Ok(())
            })
        };
        let spare = self.spare().ok().flatten();
        let newest =
            changed.iter().find(|it| spare.as_ref().is_some_and(|s| s.number == it.number));
        if let Some(newest) = newest {
            return self.write_after_spare(newest, next, put_all, Durability::Synced);
        }
        let mut batch = Batch::new();
        batch.put(keys::NEXT_NUMBER, &keys::encode_next_number(next))?;
        put_all(&mut batch)?;
        Ok(self.store.write(&batch, Durability::Synced)?)
    }

    /// Returns a folder without an entry in it, or `None` if it does not have that.
    fn without(
        &self,
        writer: &mut Writer<'_>,
        path: &[u8],
        folder: StoredFolder,
        components: &[&[u8]],
    ) -> Result<Option<StoredFolder>, ArchiveError> {
        let Some((first, rest)) = components.split_first() else { return Ok(None) };
        let mut listing = Listing::new(self, path, folder.content);
        let (mut entries, mut is_there) = (Vec::new(), false);
        while let Some(mut entry) = listing.next()? {
            if entry.name == *first {
                if rest.is_empty() {
                    is_there = true;
                    continue;
                }
                if let Kind::Folder(inner) = entry.kind
                    && let Some(inner) =
                        self.without(writer, &names::join(path, first), inner, rest)?
                {
                    entry.kind = Kind::Folder(inner);
                    is_there = true;
                }
            }
            entries.push(entry);
        }
        is_there.then(|| writer.store_listing(&entries)).transpose()
    }
}

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
        self.restore_lost_versions()?;
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
