//! The spare copy of the newest version.
//!
//! The newest version is at the end of the log, where sectors are lost. So its record is written
//! twice: a copy first, then the record of the next number, which is longer than a sector, then the
//! version and the list of its name. The loss of one sector leaves the copy, or the version; and
//! the copy tells the next number.
//!
//! The copy is used only if the record of its version is damaged. The next import writes that
//! record again, before the copy is replaced.

use super::archive::Archive;
use super::error::ArchiveError;
use super::keys;
use crate::{Batch, Durability, Error};

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
    pub(super) fn spare_of(&self, number: u64) -> Option<Vec<u8>> {
        self.spare().ok().flatten().filter(|spare| spare.number == number).map(|spare| spare.value)
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

    /// Adds the newest version again, if its record was lost.
    pub(super) fn restore_lost_version(&self) -> Result<(), ArchiveError> {
        let Ok(Some(spare)) = self.spare() else { return Ok(()) };
        let key = keys::version_key(spare.number);
        if matches!(self.store.get(&key), Ok(None)) {
            self.store.put(&key, &spare.value, Durability::None)?;
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
