//! Durability: when a write is acknowledged, and group commit.
//!
//! A write that must be durable waits for the lock `syncing`. The first holder syncs everything
//! that any thread has written so far; the others then find their writes durable and leave.
//!
//! The first write after a sync is preceded by a mark, which tells recovery what was durable
//! (`recovery.rs`).

use std::sync::{Arc, Mutex};

use super::lock::lock;
use super::poison::Poison;
use super::record;
use super::segment::Segment;
use crate::Error;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When the operating system has it. Until the next sync it survives a crash of the process,
    /// but not one of the machine.
    None,
    /// When it and every earlier write is on disk. Threads that wait at the same time share one
    /// sync.
    Synced,
}

/// A position in the log: the number of the active segment, and an offset in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPosition {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// How far the log is durable, and the lock of whoever makes it more so.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    syncing: Mutex<()>,
    durable: Mutex<LogPosition>,
}

impl GroupCommit {
    /// Returns the position up to which everything is durable.
    pub(crate) fn durable(&self) -> LogPosition {
        *lock(&self.durable)
    }

    /// Notes that everything up to `position` is durable.
    pub(crate) fn set_durable(&self, position: LogPosition) {
        let mut durable = lock(&self.durable);
        *durable = position.max(*durable);
    }

    /// Returns when everything up to `position` is as durable as asked. `end` returns the active
    /// segment and the end of the log. A failed sync poisons.
    pub(crate) fn wait(
        &self,
        position: LogPosition,
        durability: Durability,
        poison: &Poison,
        end: impl FnOnce() -> (Option<Arc<Segment>>, LogPosition),
    ) -> Result<(), Error> {
        if durability == Durability::None || self.durable() >= position {
            return Ok(());
        }
        let _one_at_a_time = lock(&self.syncing);
        if self.durable() >= position {
            return Ok(());
        }
        poison.check()?;
        let (active, position) = end();
        if let Some(active) = active {
            active.sync().map_err(|error| poison.set(error))?;
            self.set_durable(position);
        }
        Ok(())
    }

    /// Appends a mark for the end of `active` to `buffer`, if more is durable than the last mark,
    /// for the offset `marked`, says. Takes the next sequence number for it.
    pub(crate) fn append_mark_if_due(
        &self,
        active: &Segment,
        sequence: &mut u64,
        marked: &mut u64,
        buffer: &mut Vec<u8>,
    ) {
        let durable = self.durable();
        if durable.segment == active.number && durable.offset > *marked {
            let position = active.position(active.end());
            record::append_mark(buffer, durable.offset, *sequence, &position);
            *sequence += 1;
            *marked = durable.offset;
        }
    }
}
