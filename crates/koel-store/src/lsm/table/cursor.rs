//! The entries of a table in order, both ways.
//!
//! A cursor holds the index blocks above its entry and the block of data. Each step costs the
//! decoding of one entry; each block is read once. The index leads from a block only to one that
//! lies further on in the file, or further back, so that every walk ends, whatever the bytes are.

use std::ops::Range;
use std::sync::Arc;

use super::block::Block;
use super::frame::{Handle, Kind};
use super::reader::Table;
use crate::Error;
use crate::lsm::entry::{Cursor, Entry, LAST_SEQUENCE, Lost};

/// A place in a table.
#[derive(Debug)]
pub(in crate::lsm) struct TableCursor {
    table: Arc<Table>,
    fill_cache: bool,
    /// Going forward, damaged blocks of data are skipped.
    skips: bool,
    /// The index blocks from the root down, and the entry of each that leads on. Empty at a place
    /// without entry.
    path: Vec<Step>,
    data: Option<Arc<Block>>,
    /// Where `data` is.
    handle: Handle,
    place: Place,
    /// The entry of `data` at the cursor.
    index: usize,
    key: Vec<u8>,
    sequence: u64,
    value: Option<Range<usize>>,
    /// What the last move did not find.
    lost: Option<Lost>,
}

#[derive(Debug)]
struct Step {
    block: Arc<Block>,
    at: Handle,
    index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    At,
    After,
}

impl Step {
    /// Returns which keys the block has to which this step leads.
    fn keys_below(&self) -> Option<Lost> {
        let key_at = |index: usize| {
            let mut key = Vec::new();
            self.block.entry(index)?.copy_key(&mut key).ok()?;
            Some(key)
        };
        let after = match self.index.checked_sub(1) {
            Some(before) => Some(key_at(before)?),
            None => None,
        };
        Some(Lost { after, until: key_at(self.index)? })
    }
}

/// What to look for in each index block on the way down.
#[derive(Clone, Copy)]
enum Target<'a> {
    First,
    Last,
    AtOrAfter(&'a [u8], u64),
}

impl Table {
    /// Returns a cursor. It adds the blocks that it reads to the cache if `fill_cache` is set.
    pub(in crate::lsm) fn cursor(self: &Arc<Self>, fill_cache: bool) -> TableCursor {
        TableCursor {
            table: self.clone(),
            fill_cache,
            skips: false,
            path: Vec::new(),
            data: None,
            handle: Handle::default(),
            place: Place::Before,
            index: 0,
            key: Vec::new(),
            sequence: 0,
            value: None,
            lost: None,
        }
    }
}

impl TableCursor {
    /// Returns a cursor that skips damaged blocks of data when it goes forward.
    pub(in crate::lsm) fn skipping(self) -> Self {
        Self { skips: true, ..self }
    }

    /// Returns the error of a move, unless a damaged block of data is to be skipped.
    fn skip_or(&mut self, error: Error) -> Result<(), Error> {
        let is_data = self.path.len() as u64 == self.table.height();
        if !(self.skips && is_data && matches!(error, Error::Damaged { .. })) {
            return Err(error);
        }
        self.next_block()
    }

    /// Goes to a place without entry.
    fn leave(&mut self, place: Place) {
        self.path.clear();
        self.data = None;
        self.place = place;
    }

    /// Goes down from the root to an entry.
    fn place_at(&mut self, target: Target<'_>) -> Result<(), Error> {
        self.leave(Place::After);
        let (root, at) = self.table.root();
        let (root, height) = (root.clone(), self.table.height());
        if root.count() == 0 || !self.descend(root, at, height, target)? {
            return Ok(());
        }
        let data = self.data()?;
        let index = self.index_of(target, data, self.handle)?;
        if index == data.count() { self.next_block() } else { self.load(index) }
    }

    /// Goes down from the root to the last entry before a key. Reads no block behind that.
    fn place_before(&mut self, key: &[u8]) -> Result<(), Error> {
        self.leave(Place::Before);
        let (root, at) = self.table.root();
        let (root, height) = (root.clone(), self.table.height());
        let target = Target::AtOrAfter(key, LAST_SEQUENCE);
        if root.count() == 0 {
            return Ok(());
        }
        if !self.descend(root, at, height, target)? {
            return self.place_at(Target::Last);
        }
        match self.index_of(target, self.data()?, self.handle)? {
            0 => self.previous_block(),
            index => self.load(index - 1),
        }
    }

    /// Returns the first entry of a block at the target or after it.
    fn index_of(&self, target: Target<'_>, block: &Block, at: Handle) -> Result<usize, Error> {
        match target {
            Target::First => Ok(0),
            Target::Last => Ok(block.count() - 1),
            Target::AtOrAfter(key, sequence) => {
                block.seek(key, sequence).ok_or_else(|| self.table.unsound(at))
            }
        }
    }

    /// Goes down from an index block of this height to a block of data. Returns false if all of
    /// the table is before the target.
    fn descend(
        &mut self,
        mut block: Arc<Block>,
        mut at: Handle,
        height: u64,
        target: Target<'_>,
    ) -> Result<bool, Error> {
        for level in (0..height).rev() {
            let index = self.index_of(target, &block, at)?;
            if index == block.count() && self.path.is_empty() {
                self.leave(Place::After);
                return Ok(false);
            }
            let child = self.table.child_at(&block, at, index)?;
            self.path.push(Step { block, at, index });
            let kind = if level == 0 { Kind::Data } else { Kind::Index };
            block = self.table.block(child, kind, self.fill_cache || level > 0)?;
            at = child;
        }
        self.data = Some(block);
        self.handle = at;
        Ok(true)
    }

    /// Goes to the first entry of the next block of data.
    fn next_block(&mut self) -> Result<(), Error> {
        let before = self.handle;
        while let Some(mut step) = self.path.pop() {
            if step.index + 1 == step.block.count() {
                continue;
            }
            step.index += 1;
            if let Err(error) = self.step_down(step, Target::First) {
                return self.skip_or(error);
            }
            if self.handle.offset <= before.offset {
                return Err(self.table.unsound(self.handle));
            }
            return self.load(0);
        }
        self.leave(Place::After);
        Ok(())
    }

    /// Goes to the last entry of the previous block of data.
    fn previous_block(&mut self) -> Result<(), Error> {
        let before = self.handle;
        while let Some(mut step) = self.path.pop() {
            if step.index == 0 {
                continue;
            }
            step.index -= 1;
            self.step_down(step, Target::Last)?;
            if self.handle.offset >= before.offset {
                return Err(self.table.unsound(self.handle));
            }
            let count = self.data()?.count();
            return self.load(count - 1);
        }
        self.leave(Place::Before);
        Ok(())
    }

    /// Goes down from an entry of an index block, which becomes the last of the path.
    fn step_down(&mut self, step: Step, target: Target<'_>) -> Result<(), Error> {
        let below = self.table.height() - 1 - self.path.len() as u64;
        let child = self.table.child_at(&step.block, step.at, step.index)?;
        self.path.push(step);
        let kind = if below == 0 { Kind::Data } else { Kind::Index };
        let block = self.table.block(child, kind, self.fill_cache || below > 0)?;
        self.descend(block, child, below, target).map(drop)
    }

    fn data(&self) -> Result<&Arc<Block>, Error> {
        self.data.as_ref().ok_or_else(|| self.table.unsound(self.handle))
    }

    /// Decodes an entry of the block of data.
    #[inline]
    fn load(&mut self, index: usize) -> Result<(), Error> {
        let entry = self.data.as_ref().and_then(|data| data.entry(index));
        let entry = entry.ok_or_else(|| self.table.unsound(self.handle))?;
        entry.copy_key(&mut self.key)?;
        (self.sequence, self.value) = (entry.sequence, entry.value);
        (self.index, self.place) = (index, Place::At);
        Ok(())
    }

    /// After an error the cursor is at no entry, and knows what it lost.
    #[inline]
    fn checked(&mut self, moved: Result<(), Error>) -> Result<(), Error> {
        if moved.is_err() {
            self.lost = self.path.last().and_then(Step::keys_below);
            self.leave(Place::After);
        }
        moved
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let data = self.data.as_ref().filter(|_| self.place == Place::At)?;
        let value = self.value.clone().map(|value| data.value(value));
        Some(Entry { key: &self.key, sequence: self.sequence, value })
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        let moved = self.place_at(Target::AtOrAfter(key, sequence));
        self.checked(moved)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        let moved = self.place_before(key);
        self.checked(moved)
    }

    fn first(&mut self) -> Result<(), Error> {
        let moved = self.place_at(Target::First).or_else(|error| self.skip_or(error));
        self.checked(moved)
    }

    fn last(&mut self) -> Result<(), Error> {
        let moved = self.place_at(Target::Last);
        self.checked(moved)?;
        if self.place == Place::After {
            // The table is empty.
            self.place = Place::Before;
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<(), Error> {
        let count = self.data.as_ref().map_or(0, |data| data.count());
        let moved = match self.place {
            Place::Before => return self.first(),
            Place::After => return Ok(()),
            Place::At if self.index + 1 < count => self.load(self.index + 1),
            Place::At => self.next_block(),
        };
        self.checked(moved)
    }

    fn previous(&mut self) -> Result<(), Error> {
        let moved = match self.place {
            Place::Before => return Ok(()),
            Place::After => return self.last(),
            Place::At if self.index > 0 => self.load(self.index - 1),
            Place::At => self.previous_block(),
        };
        self.checked(moved)
    }

    fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }
}
