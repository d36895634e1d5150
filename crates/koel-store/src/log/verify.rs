//! Reading everything, and checking all there is to check.
//!
//! Every record of every segment against its checksum, the order of the sequences, the manifest on the disk, and the index: each live record is in it, and nothing else. Unlike opening, it goes on behind damage, at the next
//! sound record, so that one pass lists all of it.

use std::fmt;

use super::store::{Store, lock};
use super::view::View;
use crate::Error;
use crate::kernel::manifest::{self, Manifest};
use crate::kernel::record;
use crate::kernel::scan::Scan;

/// What [`LogStore::verify`](super::LogStore::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Sound records, live or not.
    pub records: u64,
    /// Records of keys with a value.
    pub live: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// All that is not sound; empty if the store is.
    pub damages: Vec<Damage>,
}

/// Bytes that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it the damage begins.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

impl Damage {
    pub(super) fn new(file: &str, offset: u64, what: &'static str) -> Self {
        Self { file: file.to_owned(), offset, what }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file, self.offset, self.what)
    }
}

impl Store {
    pub(super) fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Verified, Error> {
        let view = View::new(self);
        let mut verified = Verified::default();
        listed(&mut verified.damages, self.check_manifest())?;
        let all = view.segments.iter().map(|(_, end)| end).sum();
        for (segment, end) in &view.segments {
            let mut scan = Scan::new(segment.clone(), *end);
            let before = verified.bytes;
            loop {
                let found = scan.next().map(|found| {
                    found.map(|found| (found.head.size(), view.is_live(segment, &found)))
                });
                match listed(&mut verified.damages, found)? {
                    Some(Some((bytes, live))) => {
                        verified.records += 1;
                        verified.live += u64::from(live);
                        let step = verified.bytes / record::BLOCK as u64;
                        verified.bytes += bytes;
                        if verified.bytes / record::BLOCK as u64 != step {
                            progress(verified.bytes, all);
                        }
                    }
                    Some(None) => break,
                    None => scan.resume()?,
                }
            }
            verified.bytes = before + end;
            progress(verified.bytes, all);
        }
        if verified.damages.is_empty() && verified.live != view.keys {
            let what = "the index and the records of the log do not agree; open the store again";
            verified.damages.push(Damage::new("index", 0, what));
        }
        Ok(verified)
    }

    /// Whether the manifest on the disk is that of this store, which nobody changes meanwhile. After a failed write it may be the one before or the one behind.
    fn check_manifest(&self) -> Result<(), Error> {
        let _unchanged = lock(&self.writer);
        let Some(manifest) = Manifest::load(&*self.folder)? else {
            return Err(Error::damaged(manifest::NAME, 0, "the file is missing"));
        };
        let segments = self.segments.all();
        let named = manifest.segments.iter().map(|entry| entry.number);
        let is_own = (manifest.salt, manifest.seed, manifest.segment_bytes)
            == (self.salt, self.seed, self.segment_bytes)
            && named.eq(segments.iter().map(|segment| segment.number));
        if is_own || self.poison.has_failed() {
            Ok(())
        } else {
            Err(Error::damaged(manifest::NAME, 0, "it is not that of the segments in use"))
        }
    }
}

/// Lists what is damaged, and lets other errors through.
pub(super) fn listed<T>(
    damages: &mut Vec<Damage>,
    result: Result<T, Error>,
) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => list(damages, error).map(|()| None),
    }
}

/// Lists damage; any other error is handed back.
pub(super) fn list(damages: &mut Vec<Damage>, error: Error) -> Result<(), Error> {
    let Error::Damaged { file, offset, what } = error else { return Err(error) };
    damages.push(Damage { file, offset, what });
    Ok(())
}
