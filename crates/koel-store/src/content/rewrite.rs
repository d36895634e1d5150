//! Removing a file or a folder from the versions that it is in.

use super::archive::Archive;
use super::entry::{Content, Kind};
use super::error::ArchiveError;
use super::read::Listing;
use super::versions::{Spare, Version};
use super::write::Writer;
use super::{keys, names};
use crate::kernel::threads::lock;
use crate::{Batch, Durability};

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
            let Kind::Folder(content) = version.entry.kind else { continue };
            if let Some(content) = self.without(&mut writer, &name, content, &components)? {
                version.entry.kind = Kind::Folder(content);
                let value = Version::encode(version.time, &name, &version.entry);
                changed.push(Spare { number, value });
            }
        }
        self.replace_versions(&changed)?;
        Ok(changed.len() as u64)
    }

    /// Replaces the records of versions, durably.
    fn replace_versions(&self, changed: &[Spare]) -> Result<(), ArchiveError> {
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
            let next = self.next_number()?;
            return self.write_after_spare(newest, next, put_all, Durability::Synced);
        }
        let mut batch = Batch::new();
        put_all(&mut batch)?;
        Ok(self.store.write(&batch, Durability::Synced)?)
    }

    /// Returns a folder without an entry in it, or `None` if it does not have that.
    fn without(
        &self,
        writer: &mut Writer<'_>,
        path: &[u8],
        content: Content,
        components: &[&[u8]],
    ) -> Result<Option<Content>, ArchiveError> {
        let Some((first, rest)) = components.split_first() else { return Ok(None) };
        let mut listing = Listing::new(self, path, content);
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
