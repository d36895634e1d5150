//! The sequence numbers that live snapshots read at, and the one that new reads see.
//!
//! A number holds no memory. A merge keeps what each of the numbers can see. It
//! asks for them once, at its start: a snapshot that is taken later has a number that is at least
//! the last visible one of that moment, and the merge keeps what that one sees.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::kernel::memory;
use crate::kernel::threads::lock;

/// The numbers in use, with the number of snapshots of each.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    visible: AtomicU64,
    /// The last range deletion since the store was opened.
    last_range_deletion: AtomicU64,
    live: Mutex<BTreeMap<u64, usize>>,
}

impl Snapshots {
    /// Returns the sequence number of the last write that reads see.
    #[inline]
    pub(super) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Lets reads see all writes up to `sequence`, whose entries are in the state.
    pub(super) fn publish(&self, sequence: u64) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Notes a range deletion, which is in the state and is not published yet.
    pub(super) fn note_range_deletion(&self, sequence: u64) {
        self.last_range_deletion.store(sequence, Ordering::Release);
    }

    /// Returns the sequence number of the last range deletion that reads may see.
    #[inline]
    pub(super) fn last_range_deletion(&self) -> u64 {
        self.last_range_deletion.load(Ordering::Acquire)
    }

    /// Takes a snapshot. Returns its number.
    pub(super) fn take(&self) -> u64 {
        let mut live = lock(&self.live);
        let visible = self.visible();
        *live.entry(visible).or_default() += 1;
        visible
    }

    /// Drops a snapshot.
    pub(super) fn release(&self, sequence: u64) {
        let mut live = lock(&self.live);
        if let Some(count) = live.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                live.remove(&sequence);
            }
        }
    }

    /// Returns the numbers that a merge keeps entries for, ascending. The last one is visible now.
    pub(super) fn boundaries(&self) -> Result<Vec<u64>, Error> {
        let live = lock(&self.live);
        let mut boundaries = Vec::new();
        memory::reserve(&mut boundaries, live.len() + 1)?;
        boundaries.extend(live.keys());
        let visible = self.visible();
        if boundaries.last() != Some(&visible) {
            boundaries.push(visible);
        }
        Ok(boundaries)
    }

    /// Returns the number of live snapshots.
    pub(super) fn live(&self) -> u64 {
        lock(&self.live).values().sum::<usize>() as u64
    }
}
