//! Whose a record was that can no longer be read.
//!
//! A record may only replace one of the same key, so the keys are compared. If the old record is
//! damaged, the hint of its segment decides: it has 64 bits of a hash of the key, under a checksum
//! of its own. Two keys share that hash as rarely as wrong bytes have the right checksum. So a
//! damaged record does not make other keys unreadable, and its own key can be written or deleted.
//! Without a hint the damage stays an error.

use super::read::Located;
use super::store::Store;
use crate::Error;
use crate::kernel::segment::Segment;

impl Store {
    /// Returns the live record of a key that is about to be replaced or deleted. `located` is the
    /// result of reading it.
    pub(super) fn resolve_damaged(
        &self,
        located: Result<Option<Located>, Error>,
        hash: u64,
    ) -> Result<Option<Located>, Error> {
        match located {
            Err(Error::Damaged { .. }) => self.locate_by_hash(hash),
            located => located,
        }
    }

    /// Returns the live record of the key with this hash, without comparing keys.
    fn locate_by_hash(&self, hash: u64) -> Result<Option<Located>, Error> {
        for location in self.index.candidates(hash).into_iter().flatten() {
            let Some((segment, offset)) = self.segments.at(location) else { continue };
            let (record_hash, size) = self.hash_at(&segment, offset)?;
            if record_hash == hash {
                return Ok(Some(Located { segment, location, size }));
            }
        }
        Ok(None)
    }

    /// Returns the hash of the key of a record, and its size. They come from the hint if the record
    /// is damaged.
    fn hash_at(&self, segment: &Segment, offset: u64) -> Result<(u64, u64), Error> {
        let mut buffer = Vec::new();
        match segment.record(offset, &mut buffer) {
            Ok(header) => Ok((self.hash(header.key(&buffer)), header.size())),
            Err(error @ Error::Damaged { .. }) => {
                let cache = &self.hint_cache;
                let note = cache.note_at(&*self.folder, segment, self.segment_bytes, offset);
                note.map(|note| (note.hash, note.size())).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}
