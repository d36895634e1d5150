//! What the parts of a store share: the folder, the segments, the index, and who may change them.
//!
//! Locks, in the order in which a thread may take them: `compacting` (one compaction at a time), `moving` (locations change), `syncing` (one sync at a time), `writer` (the end of the log, the manifest, and every change of
//! the index), `durable`, `told`. Readers take none of them, only those of a shard of the index and of the table of segments, for a moment each.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use koel::KeyHasher;

use super::damaged::Told;
use super::hint::Notes;
use super::index::Index;
use super::open::Opened;
use super::segments::Segments;
use super::view::Watch;
use crate::Error;
use crate::kernel::files::Folder;
use crate::kernel::manifest::{Entry, Manifest};
use crate::kernel::poison::Poison;
use crate::kernel::segment::{FIRST, Segment};

/// A store, open.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) folder: Arc<dyn Folder>,
    pub(super) salt: u64,
    pub(super) seed: u64,
    pub(super) segment_bytes: u64,
    pub(super) segments: Segments,
    pub(super) index: Index,
    pub(super) compacting: Mutex<()>,
    /// Why the last compaction in the background failed, if it did.
    pub(super) compaction_failed: Mutex<Option<String>>,
    /// Held for writing while records of the log and locations of the index do not fit together.
    pub(super) moving: RwLock<()>,
    pub(super) syncing: Mutex<()>,
    pub(super) writer: Mutex<Writer>,
    pub(super) durable: Mutex<Position>,
    pub(super) poison: Poison,
    /// What the hint tells of the segment in which damage was met last.
    pub(super) told: Mutex<Option<Told>>,
    pub(super) counts: Counts,
    /// A segment is full: the thread that compacts may have work.
    pub(super) filled: Bell,
    /// Much is not durable: the thread that syncs has work.
    pub(super) unsynced: Bell,
    /// How much that is.
    pub(super) sync_behind: u64,
    pub(super) opened: Opened,
}

/// How far the log goes: the number of the segment written to, and an offset in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// The end of the log.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The last segment; none before the first write.
    pub(super) active: Option<Arc<Segment>>,
    /// Of the next record.
    pub(super) sequence: u64,
    /// Of the next segment, at least.
    pub(super) number: u64,
    /// The offset that the last mark in the active segment says was durable.
    pub(super) marked: u64,
    /// The offset in the active segment at which the thread that syncs was called last.
    pub(super) called: u64,
    /// The manifest says that the log may go on behind what it knows.
    pub(super) announced: bool,
    /// What the hint of the active segment will say.
    pub(super) notes: Notes,
    /// Iterators that want to know which records stop being live.
    pub(super) watches: Vec<Weak<Watch>>,
    /// Where records are made, kept from one write to the next.
    pub(super) buffer: Vec<u8>,
}

/// What was done since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Bytes of keys and values that were written.
    pub(super) user: AtomicU64,
    /// Bytes appended to the log for them.
    pub(super) appended: AtomicU64,
    /// Bytes that compaction wrote.
    pub(super) compacted: AtomicU64,
}

/// What a thread in the background waits for.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<Call>,
    rung: Condvar,
}

/// What a thread in the background is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Call {
    /// Wait.
    #[default]
    Nothing,
    /// Do what there is to do.
    Work,
    /// End.
    Stop,
}

impl Bell {
    /// Tells the thread what to do; nothing takes the place of an order to stop.
    pub(super) fn ring(&self, call: Call) {
        let mut state = lock(&self.state);
        if *state != Call::Stop {
            *state = call;
        }
        self.rung.notify_all();
    }

    /// Waits for an order: false to end.
    pub(super) fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        while *state == Call::Nothing {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let go_on = *state == Call::Work;
        if go_on {
            *state = Call::Nothing;
        }
        go_on
    }

    /// Whether the thread is to end.
    pub(super) fn stops(&self) -> bool {
        *lock(&self.state) == Call::Stop
    }
}

/// Locks; that a thread panicked while it had the lock does not matter, since nothing in here panics between two changes that belong together.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hash of keys of a store with this seed.
#[inline]
pub(super) fn hasher(seed: u64) -> KeyHasher {
    KeyHasher::Xxh3 { seed }
}

impl Store {
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        hasher(self.seed).hash(key)
    }

    /// The manifest of this moment, for segments in this order.
    pub(super) fn manifest(
        &self,
        writer: &Writer,
        segments: &[Arc<Segment>],
        clean: bool,
    ) -> Manifest {
        let durable = *lock(&self.durable);
        let active = writer.active.as_ref().map(|active| active.number);
        let entry = |segment: &Arc<Segment>| {
            let exact = clean || Some(segment.number) != active;
            let known = if durable.segment == segment.number { durable.offset } else { FIRST };
            Entry {
                number: segment.number,
                end: if exact { segment.end() } else { known },
                cleaned: segment.cleaned(),
            }
        };
        Manifest {
            clean,
            salt: self.salt,
            seed: self.seed,
            segment_bytes: self.segment_bytes,
            sequence: writer.sequence,
            number: writer.number,
            keys: self.index.len(),
            segments: segments.iter().map(entry).collect(),
        }
    }

    /// Makes these the segments of the log, which may go on behind what the manifest knows.
    pub(super) fn announce(
        &self,
        writer: &mut Writer,
        order: &[Arc<Segment>],
    ) -> Result<(), Error> {
        self.publish(&self.manifest(writer, order, false))?;
        writer.announced = true;
        Ok(())
    }

    /// Makes this the manifest; a failure ends all writing.
    pub(super) fn publish(&self, manifest: &Manifest) -> Result<(), Error> {
        manifest.store(&*self.folder).map_err(|error| self.poison.by(error))
    }

    /// Everything up to `position` is on the disk.
    pub(super) fn set_durable(&self, position: Position) {
        let mut durable = lock(&self.durable);
        *durable = position.max(*durable);
    }
}

impl Writer {
    /// The end of the log.
    pub(super) fn position(&self) -> Position {
        self.active.as_ref().map_or(Position::default(), |active| Position {
            segment: active.number,
            offset: active.end(),
        })
    }

    /// Keeps a buffer for the next write, but no more than a MiB of it.
    pub(super) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(1 << 20);
        self.buffer = buffer;
    }
}
