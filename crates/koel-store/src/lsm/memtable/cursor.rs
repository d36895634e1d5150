//! A place in a memtable, with a copy of the entry there.
//!
//! A step forward follows a link; a step back is a search. Entries that are added later have
//! greater sequence numbers than the reader of the cursor sees.

use std::sync::Arc;

use super::super::entry::{Cursor, Entry, LAST_SEQUENCE};
use super::Memtable;
use super::arena::Address;
use super::list::Place;
use crate::Error;

#[derive(Debug)]
pub(in crate::lsm) struct MemtableCursor {
    memtable: Arc<Memtable>,
    at: At,
    key: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Start,
    Entry { address: Address, sequence: u64, is_deletion: bool },
    End,
}

impl MemtableCursor {
    pub(in crate::lsm) fn new(memtable: Arc<Memtable>) -> Self {
        Self { memtable, at: At::Start, key: Vec::new(), value: Vec::new() }
    }

    /// Moves to an entry and copies it; to `past` if there is none.
    fn go_to(&mut self, found: Option<Address>, past: At) -> Result<(), Error> {
        self.at = past;
        if let Some(address) = found {
            let node = self.memtable.list.node(address);
            node.copy_key(&mut self.key)?;
            node.copy_value(&mut self.value)?;
            let (sequence, is_deletion) = (node.sequence(), node.is_deletion());
            self.at = At::Entry { address, sequence, is_deletion };
        }
        Ok(())
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        let At::Entry { sequence, is_deletion, .. } = self.at else { return None };
        let value = (!is_deletion).then_some(&self.value[..]);
        Some(Entry { key: &self.key, sequence, value })
    }

    fn seek(&mut self, key: &[u8], sequence: u64) -> Result<(), Error> {
        let found = self.memtable.list.first_from(&Place::new(key, sequence));
        self.go_to(found, At::End)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<(), Error> {
        let found = self.memtable.list.last_before(&Place::new(key, LAST_SEQUENCE));
        self.go_to(found, At::Start)
    }

    fn first(&mut self) -> Result<(), Error> {
        let found = self.memtable.list.first();
        self.go_to(found, At::End)
    }

    fn last(&mut self) -> Result<(), Error> {
        let found = self.memtable.list.last();
        self.go_to(found, At::Start)
    }

    fn next(&mut self) -> Result<(), Error> {
        match self.at {
            At::Start => self.first(),
            At::Entry { address, .. } => {
                let found = self.memtable.list.next(address);
                self.go_to(found, At::End)
            }
            At::End => Ok(()),
        }
    }

    fn previous(&mut self) -> Result<(), Error> {
        match self.at {
            At::Start => Ok(()),
            At::Entry { address, .. } => {
                let list = &self.memtable.list;
                let found = list.last_before(&list.node(address).place());
                self.go_to(found, At::Start)
            }
            At::End => self.last(),
        }
    }
}
