//! Appending frames to a new file.

use std::sync::Arc;

use super::footer;
use super::frame::{self, Codec, HEADER, Handle, Kind};
use crate::Error;
use crate::kernel::access::write_all;
use crate::kernel::file_names;
use crate::kernel::files::{File, Folder};
use crate::kernel::memory;
use crate::kernel::record::Position;

/// Bytes that are written with one call.
const WRITE: usize = 256 << 10;

/// A file to which frames are appended.
#[derive(Debug)]
pub(super) struct FrameWriter {
    file: Arc<dyn File>,
    name: String,
    salt: u64,
    number: u64,
    /// Bytes that are not written yet.
    unwritten: Vec<u8>,
    /// Bytes that are written.
    written: u64,
}

impl FrameWriter {
    /// Creates the file of table `number`, and its header.
    pub(super) fn new(folder: &dyn Folder, number: u64, salt: u64) -> Result<Self, Error> {
        let name = file_names::table(number);
        let file = folder.create(&name).map_err(Error::io("create", &name))?;
        let unwritten = memory::copy_of(&footer::FILE.header(salt, number))?;
        Ok(Self { file, name, salt, number, unwritten, written: 0 })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of the file, those that are not written yet included.
    pub(super) fn len(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    /// Returns the position of the next byte.
    fn position(&self) -> Position {
        Position { salt: self.salt, segment: self.number, offset: self.len() }
    }

    /// Appends the frame of a block.
    pub(super) fn append(&mut self, kind: Kind, codec: Codec, raw: &[u8]) -> Result<Handle, Error> {
        let position = self.position();
        let stored = frame::seal(kind, codec, raw, position, &mut self.unwritten)?;
        if self.unwritten.len() >= WRITE {
            self.write()?;
        }
        Ok(Handle { offset: position.offset, stored })
    }

    fn write(&mut self) -> Result<(), Error> {
        let written = write_all(&*self.file, &self.unwritten, self.written);
        written.map_err(Error::io("write", &self.name))?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.unwritten.shrink_to(2 * WRITE + HEADER);
        Ok(())
    }

    /// Appends the footer and makes the file durable.
    pub(super) fn finish(mut self, properties: Handle) -> Result<(), Error> {
        let footer = footer::encode(properties, self.position());
        memory::reserve(&mut self.unwritten, footer.len())?;
        self.unwritten.extend_from_slice(&footer);
        self.write()?;
        self.file.sync().map_err(Error::io("sync", &self.name))
    }
}
