//! Opening a store: its manifest, the files of its log, where the log ends, and what a crash left
//! behind. Nothing is changed before all of it was checked.
//!
//! **Where a log ends.** Every file of a log but the last has an exact end, and so has the last one
//! after the store was closed: each missing or unsound byte is damage. In the last file of a store
//! that was not closed, unsound bytes and a batch without its end are a *torn end* if nothing says
//! that they were durable: neither the manifest nor a later mark. Sound records may follow them,
//! since a disk writes in any order. They were not durable either and are cut off too, so that a
//! prefix of the log stays.
//!
//! **Leftovers** are files that the manifest does not name. They are removed. But if such a file
//! has a sequence number that no named one has reached, the manifest is an older one: a crash
//! leaves no such file, while a MANIFEST restored alone does.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::events::tell;
use super::files::Folder;
use super::manifest::{LogEntry, Manifest};
use super::memory;
use super::poison::Poison;
use super::scan::{Record, Scan, last_durable_offset};
use super::segment::{FIRST_RECORD, SIZES, Segment};
use super::store_files::{HINT, NEW_GUIDE, NEW_MANIFEST, SEGMENT, StoreKind, TABLE};
use crate::Error;
use crate::error::FOLDER;

/// Unsynced bytes that a crash left incomplete, and that were cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// The segment.
    pub file: String,
    /// Its length now.
    pub offset: u64,
    /// How many bytes were cut off, or ignored if the store is read-only.
    pub bytes: u64,
}

/// What opening a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// The incomplete end of the log, if the store was not closed and there was one.
    pub torn: Option<TornEnd>,
    /// The store was closed before, or is new.
    pub was_closed: bool,
    /// The number of segments of a log store whose hints were used.
    pub hinted: u64,
    /// Bytes of the log that were read: in a log store, those that no hint covers.
    pub replayed: u64,
    /// Files that a crash had left behind, and that were removed.
    pub removed: Vec<String>,
}

impl OpenReport {
    /// Tells that the store was opened.
    pub(crate) fn tell(&self, kind: StoreKind) {
        let kind = match kind {
            StoreKind::Log => "log",
            StoreKind::Lsm => "ordered",
        };
        tell!(
            info,
            "a store was opened",
            kind = kind,
            was_closed = self.was_closed,
            replayed = self.replayed,
            removed = self.removed.len(),
            is_torn = self.torn.is_some(),
        );
    }
}

/// Returns the number in the name of a file of a store, if it is one.
pub(crate) fn number_of(kind: StoreKind, name: &str) -> Option<u64> {
    SEGMENT.number_in(name).or_else(|| match kind {
        StoreKind::Log => HINT.number_in(name),
        StoreKind::Lsm => TABLE.number_in(name),
    })
}

/// Reads the manifest, and stores one if there is none and no file of a store: with this seed as
/// seed and salt, or with random ones. Returns it, and the names of all files.
pub(crate) fn manifest(
    folder: &dyn Folder,
    (kind, segment_bytes): (StoreKind, u64),
    seed: Option<u64>,
    read_only: bool,
) -> Result<(Manifest, Vec<String>), Error> {
    let list = || folder.list().map_err(Error::io("list", FOLDER));
    let manifest = match Manifest::load(kind, folder)? {
        Some(manifest) => manifest,
        None if list()?.iter().any(|name| number_of(kind, name).is_some()) => {
            return Err(Error::NoManifest);
        }
        None if read_only => return Err(Error::NoStore { folder: FOLDER.to_owned() }),
        None => {
            let [salt, seed] = [(); 2].map(|()| seed.unwrap_or_else(random));
            let new = Manifest::new(kind, salt, seed, segment_bytes);
            new.store(folder, &Poison::default()).map(|()| new)?
        }
    };
    if !read_only {
        // A process that crashed may have left names that are not durable, and they must be before
        // anything depends on them.
        folder.sync().map_err(Error::io("sync", FOLDER))?;
    }
    Ok((manifest, list()?))
}

/// Returns a random number. `RandomState` has random keys, which differ from call to call.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// Opens the files of the log that the manifest names, and checks their lengths.
pub(crate) fn open_log(
    folder: &dyn Folder,
    manifest: &Manifest,
) -> Result<Vec<Arc<Segment>>, Error> {
    let open = |(place, entry): (usize, &LogEntry)| {
        let file = Segment::open(folder, manifest.salt, entry.number)?;
        file.cleaned.set(entry.cleaned);
        check_length(&file, entry.end, manifest.has_exact_end(place))?;
        Ok(Arc::new(file))
    };
    manifest.logs.iter().enumerate().map(open).collect()
}

/// Checks the length of a file. If its end is not exact, it has at least the bytes up to there,
/// which were durable.
fn check_length(file: &Segment, end: u64, is_exact: bool) -> Result<(), Error> {
    let (len, max) = (file.end(), *SIZES.end());
    match len.cmp(&end) {
        Ordering::Less if is_exact => Err(file.damaged(len, "the file is cut short")),
        Ordering::Less => Err(file.damaged(len, "the file is shorter than its durable part was")),
        Ordering::Greater if is_exact => {
            Err(file.damaged(end, "there are bytes after the last record"))
        }
        _ if len > max => Err(file.damaged(max, "the file is longer than any segment")),
        _ => Ok(()),
    }
}

/// Replays the whole batches of a file of the log, which has this place in it, from `from` on.
/// Returns where it ends, without a torn end.
///
/// `take` makes of each record what is kept of it until its batch is whole, and `apply` gets all of
/// that and the last record.
pub(crate) fn replay<T>(
    file: &Arc<Segment>,
    (manifest, place): (&Manifest, usize),
    from: u64,
    mut take: impl FnMut(&Record<'_>) -> Result<Option<T>, Error>,
    mut apply: impl FnMut(&mut Vec<T>, &Record<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut scan = Scan::from(file.clone(), from, file.end());
    let (mut batch, mut whole) = (Vec::new(), from);
    let lost = loop {
        match scan.next() {
            Ok(Some(record)) => {
                if let Some(taken) = take(&record)? {
                    memory::push(&mut batch, taken)?;
                }
                if !record.header.more {
                    apply(&mut batch, &record)?;
                    batch.clear();
                    whole = scan.offset();
                }
            }
            Ok(None) if batch.is_empty() => return Ok(file.end()),
            Ok(None) => break file.damaged(whole, "a batch has no end"),
            Err(error @ Error::Damaged { .. }) => break error,
            Err(error) => return Err(error),
        }
    };
    if manifest.has_exact_end(place) {
        return Err(lost);
    }
    let known = manifest.logs[place].end.max(last_durable_offset(file, whole, file.end())?);
    if whole >= known { Ok(whole) } else { Err(lost) }
}

/// Prepares the last file of the log to be written to from `end` on: cuts off a torn end, and makes
/// the rest durable unless the store `was_closed`. A read-only store ignores a torn end.
pub(crate) fn cut(
    last: &Segment,
    end: u64,
    was_closed: bool,
    read_only: bool,
) -> Result<Option<TornEnd>, Error> {
    let len = last.end();
    let torn = TornEnd { file: last.name.clone(), offset: end, bytes: len.saturating_sub(end) };
    if read_only {
        last.set_end(end);
    } else {
        if end < len {
            last.truncate(end)?;
        }
        if !was_closed {
            last.sync()?;
        }
    }
    Ok((end < len).then_some(torn))
}

/// Removes the files of the store among `names` that the manifest does not name, unless it is
/// `read_only`. Returns which were removed.
///
/// Fails if one of them has a sequence number from `next` on: then a later manifest names it. A
/// file that was not finished has none. `last_sequence` returns that of a table.
pub(crate) fn remove_leftovers(
    folder: &dyn Folder,
    (manifest, names): (&Manifest, &[String]),
    next: u64,
    read_only: bool,
    last_sequence: impl Fn(u64) -> Result<u64, Error>,
) -> Result<Vec<String>, Error> {
    let logs = manifest.logs.iter().map(|log| log.number);
    let named: HashSet<u64> = logs.chain(manifest.runs.iter().map(|run| run.number)).collect();
    let is_unnamed = |name: &&String| {
        number_of(manifest.kind, name).is_some_and(|number| !named.contains(&number))
            || [NEW_GUIDE, NEW_MANIFEST].contains(&&name[..])
    };
    let mut unnamed: Vec<String> = names.iter().filter(is_unnamed).cloned().collect();
    for name in &unnamed {
        let sequence = match (SEGMENT.number_in(name), TABLE.number_in(name)) {
            (Some(number), _) => first_sequence(folder, manifest.salt, number),
            (None, Some(number)) => last_sequence(number),
            (None, None) => continue,
        };
        match sequence {
            Ok(sequence) if sequence >= next => {
                return Err(Error::OldManifest { file: name.clone() });
            }
            Ok(_) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if read_only {
        unnamed.clear();
    }
    for name in &unnamed {
        folder.remove(name).map_err(Error::io("remove", name))?;
    }
    Ok(unnamed)
}

/// Returns the sequence number of the first record of a segment.
fn first_sequence(folder: &dyn Folder, salt: u64, number: u64) -> Result<u64, Error> {
    let segment = Segment::open(folder, salt, number)?;
    segment.record(FIRST_RECORD, &mut Vec::new()).map(|header| header.sequence)
}
