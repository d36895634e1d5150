//! Versions: what was imported under a name, and when.
//!
//! A version has a number, which no other version of the archive has. Its record has all that leads
//! to its files; the record of the name lists its versions. Both are written in one batch, so after
//! a crash a version is there as a whole or not at all.
//!
//! A name is not inside another name, so each path belongs to one name. A log has no order of keys:
//! versions are listed by number, without a pass over all chunks.
//!
//! **Numbers.** The next one is known from its own record, or else from the spare copy of the
//! newest version (see below). If both are unreadable, a pass over all keys finds the versions that
//! are readable, and looking up the numbers around them those whose record is damaged. Then the
//! list may lack versions, and says so with the damage.
//!
//! **The spare copy.** The newest version is at the end of the log, where sectors are lost. So its
//! record is written twice: a copy first, then the record of the next number, which is longer than
//! a sector, then the version and the list of its name. The loss of one sector leaves the copy, or
//! the version; and the copy tells the next number.
//!
//! The copy is used only if the record of its version is damaged. The next import writes that
//! record again, before the copy is replaced. Versions of folders have a lasting copy as well
//! (`copies.rs`).

use std::collections::BTreeSet;
use std::path::Path;

use super::entry::{DecodeError, Entry, Fields, Time, encode_text};
use super::error::ArchiveError;
use super::{Archive, keys, names};
use crate::{Batch, Durability, Error};

/// What was imported under a name at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// The number, which no other version of the archive has. Later versions have larger ones.
    pub number: u64,
    /// When the import began.
    pub time: Time,
    /// The name under which it was imported.
    pub name: Vec<u8>,
    /// The file, folder or link.
    pub entry: Entry,
}

impl Version {
    pub(super) fn encode(time: Time, name: &[u8], entry: &Entry) -> Vec<u8> {
        let mut bytes = vec![keys::FORMAT];
        time.encode(&mut bytes);
        encode_text(&mut bytes, name);
        entry.encode(&mut bytes);
        bytes
    }

    fn decode(number: u64, value: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Fields(value);
        if fields.array()? != [keys::FORMAT] {
            return Err(DecodeError::Invalid);
        }
        let time = Time::decode(&mut fields)?;
        let name = fields.text()?.to_vec();
        let entry = Entry::decode(&mut fields)?;
        let is_valid = fields.0.is_empty() && names::is_name(&name) && entry.name.is_empty();
        is_valid.then_some(Self { number, time, name, entry }).ok_or(DecodeError::Invalid)
    }
}

impl Archive {
    /// Returns the newest version of every name, by ascending number.
    ///
    /// Takes two reads for each version, and a pass over all keys if the next number is damaged. A
    /// version with a damaged record yields an error, and the iterator goes on after it. If there
    /// may be versions that cannot be found, the last item is the damage.
    ///
    /// # Errors
    /// Those of the store.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<Version, ArchiveError>>, ArchiveError> {
        self.list(true)
    }

    /// Returns all versions of all names, by ascending number, as [`entries`](Self::entries) does.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn versions(
        &self,
    ) -> Result<impl Iterator<Item = Result<Version, ArchiveError>>, ArchiveError> {
        self.list(false)
    }

    fn list(
        &self,
        newest_only: bool,
    ) -> Result<impl Iterator<Item = Result<Version, ArchiveError>>, ArchiveError> {
        let is_meant = move |(version, is_newest): (Version, bool)| {
            (is_newest || !newest_only).then_some(version)
        };
        let Numbers { all, damage } = self.numbers()?;
        let listed = all.into_iter().filter_map(move |number| {
            self.listed(number).map(|found| found.and_then(is_meant)).transpose()
        });
        Ok(listed.chain(damage.map(Err)))
    }

    /// Returns the version with this number.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchVersion`], and those of the store.
    pub fn version(&self, number: u64) -> Result<Version, ArchiveError> {
        let found = self.listed(number)?.map(|(version, _)| version);
        found.ok_or(ArchiveError::NoSuchVersion { number })
    }

    /// Returns the version with this number if its name lists it, and whether it is the newest.
    pub(super) fn listed(&self, number: u64) -> Result<Option<(Version, bool)>, ArchiveError> {
        let Some(version) = self.stored_version(number)? else { return Ok(None) };
        let numbers = self.numbers_of(&version.name)?.unwrap_or_default();
        let is_newest = numbers.last() == Some(&number);
        Ok(numbers.contains(&number).then_some((version, is_newest)))
    }

    /// Returns the version in the record of this number.
    pub(super) fn stored_version(&self, number: u64) -> Result<Option<Version>, ArchiveError> {
        let stored = match self.store.get(&keys::version_key(number)) {
            Err(error @ Error::Damaged { .. }) => {
                self.copy_of_version(number).map(Some).ok_or(ArchiveError::Store(error))
            }
            found => found.map_err(ArchiveError::Store),
        };
        let Some(value) = stored? else { return Ok(None) };
        let version = Version::decode(number, &value);
        version.map(Some).map_err(|_| ArchiveError::Record { what: "a version" })
    }

    /// Returns the name that this path on disk was last imported as, if it still has versions. The
    /// path is absolute, without links, as [`std::fs::canonicalize`] returns it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn name_of_source(&self, path: &Path) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(name) = self.store.get(&keys::source_key(path))? else { return Ok(None) };
        Ok(self.numbers_of(&name)?.map(|_| name))
    }

    /// Returns the numbers of the versions of a name. If its list is damaged, the versions tell; if
    /// one of those is too, that is an error.
    pub(super) fn numbers_of(&self, name: &[u8]) -> Result<Option<Vec<u64>>, ArchiveError> {
        let listed = self.stored_numbers_of(name);
        if !listed.as_ref().is_err_and(ArchiveError::is_damage) {
            return listed;
        }
        let Numbers { all, damage } = self.numbers()?;
        let mut numbers = Vec::new();
        for number in all {
            let version = self.stored_version(number)?;
            numbers.extend(version.filter(|version| version.name == name).map(|it| it.number));
        }
        damage.map_or(Ok((!numbers.is_empty()).then_some(numbers)), Err)
    }

    /// Returns the list of the versions of a name.
    pub(super) fn stored_numbers_of(&self, name: &[u8]) -> Result<Option<Vec<u64>>, ArchiveError> {
        let value = self.store.get(&keys::name_key(name))?;
        value.map(|value| keys::decode_numbers(&value, "a name")).transpose()
    }

    /// Returns the name that is this path, or that of a folder above it.
    pub(super) fn name_above(&self, path: &[u8]) -> Result<Option<Vec<u8>>, ArchiveError> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at).chain([path.len()]) {
            if self.numbers_of(&path[..end])?.is_some() {
                return Ok(Some(path[..end].to_vec()));
            }
        }
        Ok(None)
    }

    /// Returns the newest version of the name that is this path or a folder above it.
    pub(super) fn version_above(&self, path: &[u8]) -> Result<Option<Version>, ArchiveError> {
        let Some(name) = self.name_above(path)? else { return Ok(None) };
        let newest = self.numbers_of(&name)?.and_then(|numbers| numbers.last().copied());
        let Some(number) = newest else { return Ok(None) };
        let version = self.stored_version(number)?;
        let missing = || {
            let what = format!("the record of version {number} is missing");
            ArchiveError::Broken { name: name.clone(), what }
        };
        version.map(Some).ok_or_else(missing)
    }
}

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
                numbers.extend(keys::number_in(&key).or(keys::copied_number_in(&key)));
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

/// A copy of the record of a version.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) number: u64,
    /// The value of the record.
    pub(super) value: Vec<u8>,
}

impl Archive {
    /// Returns the copy, if there is one.
    pub(super) fn spare(&self) -> Result<Option<Spare>, ArchiveError> {
        let Some(value) = self.store.get(keys::SPARE)? else { return Ok(None) };
        let (number, value) = value.split_first_chunk().ok_or(keys::INVALID_SPARE)?;
        Ok(Some(Spare { number: u64::from_le_bytes(*number), value: value.to_vec() }))
    }

    /// Returns the copy of a version whose record is damaged.
    pub(super) fn copy_of_version(&self, number: u64) -> Option<Vec<u8>> {
        let spare = self.spare().ok().flatten().filter(|spare| spare.number == number);
        let copy = || self.store.get(&keys::version_copy_key(number)).ok().flatten();
        spare.map(|spare| spare.value).or_else(copy)
    }

    /// Writes the copy of a version that stays when there are newer ones.
    pub(super) fn put_copy_of(&self, version: &Spare) -> Result<(), ArchiveError> {
        let key = keys::version_copy_key(version.number);
        Ok(self.store.put(&key, &version.value, Durability::None)?)
    }

    /// Writes a batch with a version after a copy of the version, with the next number between
    /// them.
    pub(super) fn write_after_spare(
        &self,
        spare: &Spare,
        next: u64,
        changes: impl FnOnce(&mut Batch) -> Result<(), ArchiveError>,
        durability: Durability,
    ) -> Result<(), ArchiveError> {
        self.restore_from_spare()?;
        let copy = [&spare.number.to_le_bytes(), &spare.value[..]].concat();
        self.store.put(keys::SPARE, &copy, Durability::None)?;
        let mut batch = Batch::new();
        batch.put(keys::NEXT_NUMBER, &keys::encode_next_number(next))?;
        changes(&mut batch)?;
        Ok(self.store.write(&batch, durability)?)
    }

    /// Writes the record of a version again that only the copy has.
    pub(super) fn restore_from_spare(&self) -> Result<(), ArchiveError> {
        let spare = match self.spare() {
            Ok(Some(spare)) => spare,
            Err(error) if !error.is_damage() => return Err(error),
            _ => return Ok(()),
        };
        let key = keys::version_key(spare.number);
        match self.store.get(&key) {
            Err(Error::Damaged { .. }) => {
                Ok(self.store.put(&key, &spare.value, Durability::None)?)
            }
            found => Ok(found.map(drop)?),
        }
    }

    /// Adds the versions again whose record was lost and whose copy was not. O(keys).
    pub(super) fn restore_lost_versions(&self) -> Result<(), ArchiveError> {
        let mut copied: Vec<u64> = Vec::new();
        for key in self.store.keys() {
            copied.extend(keys::copied_number_in(&key?));
        }
        copied.extend(self.spare().ok().flatten().map(|spare| spare.number));
        for number in copied {
            let key = keys::version_key(number);
            if matches!(self.store.get(&key), Ok(None))
                && let Some(value) = self.copy_of_version(number)
            {
                self.store.put(&key, &value, Durability::None)?;
            }
        }
        Ok(())
    }

    /// Removes a copy whose version was never added: the import failed.
    pub(super) fn drop_stale_spare(&self) -> Result<(), ArchiveError> {
        if let Ok(Some(spare)) = self.spare()
            && let Ok(None) = self.store.get(&keys::version_key(spare.number))
        {
            self.store.delete(keys::SPARE, Durability::None)?;
        }
        Ok(())
    }

    /// Adds the removal of the copy to a batch that removes its version.
    pub(super) fn remove_spare_of(
        &self,
        numbers: &[u64],
        batch: &mut Batch,
    ) -> Result<(), ArchiveError> {
        if self.spare().ok().flatten().is_some_and(|spare| numbers.contains(&spare.number)) {
            batch.delete(keys::SPARE)?;
        }
        Ok(())
    }
}
