//! Versions: what was imported under a name, and when.
//!
//! A version has a number, which no other version of the archive has. Its record has all that leads
//! to its files; the record of the name lists its versions. Both are written in one batch, so after
//! a crash a version is there as a whole or not at all.
//!
//! A name is not inside another name, so each path belongs to one name. A log has no order of keys:
//! versions are listed by number, without a pass over all chunks.

use std::path::Path;

use super::archive::Archive;
use super::entry::{DecodeError, Entry, Fields, Time, encode_text};
use super::error::ArchiveError;
use super::keys;
use super::names;
use super::numbers::Numbers;
use crate::Error;

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
    /// [`ArchiveError::OldFormat`], and those of the store.
    pub fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<Version, ArchiveError>>, ArchiveError> {
        let newest = |(version, is_newest): (Version, bool)| is_newest.then_some(version);
        let Numbers { all, damage } = self.numbers()?;
        let listed = all.into_iter().filter_map(move |number| {
            self.listed(number).map(|found| found.and_then(newest)).transpose()
        });
        Ok(listed.chain(damage.map(Err)))
    }

    /// Returns all versions of all names, by ascending number, as [`entries`](Self::entries) does.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    pub fn versions(
        &self,
    ) -> Result<impl Iterator<Item = Result<Version, ArchiveError>>, ArchiveError> {
        let Numbers { all, damage } = self.numbers()?;
        let listed = all.into_iter().filter_map(|number| {
            self.listed(number).map(|found| found.map(|(version, _)| version)).transpose()
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
                self.spare_of(number).map(Some).ok_or(ArchiveError::Store(error))
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
