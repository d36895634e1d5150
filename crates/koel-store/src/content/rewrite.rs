//! Removing a file or a folder from the versions that it is in.

use super::archive::Archive;
use super::entry::{Content, Kind};
use super::error::ArchiveError;
use super::keys;
use super::names;
use super::read::Listing;
use super::versions::Version;
use super::write::Writer;
use crate::kernel::lock::lock;
use crate::{Batch, Durability};

impl Archive {
    /// Removes what is inside a name from all versions of that name, durably. Returns whether it
    /// was in one.
    ///
    /// The folders above it are written anew; the versions keep their numbers and times.
    pub(super) fn remove_inside(&self, path: &[u8]) -> Result<bool, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let _alone = lock(&self.known_names);
        let Some(name) = self.name_above(path)? else { return Ok(false) };
        let Some(inside) = path.get(name.len() + 1..) else { return Ok(false) };
        let components: Vec<&[u8]> = inside.split(|byte| *byte == b'/').collect();
        let mut writer = Writer::new(self);
        let mut batch = Batch::new();
        for number in self.numbers_of(&name)?.unwrap_or_default() {
            let Some(mut version) = self.stored_version(number)? else { continue };
            let Kind::Folder(content) = version.entry.kind else { continue };
            if let Some(content) = self.without(&mut writer, &name, content, &components)? {
                version.entry.kind = Kind::Folder(content);
                let value = Version::encode(version.time, &name, &version.entry);
                batch.put(&keys::version_key(number), &value)?;
            }
        }
        if batch.is_empty() {
            return Ok(false);
        }
        self.store.write(&batch, Durability::Synced)?;
        Ok(true)
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
