//! The kinds of stores, the names of their files (docs/FORMAT-STORES.md, The files of a store), and
//! files with a number: their header says what kind of file each is, and whose.
//!
//! ```text
//! 0        8         12   16     24       32         40
//! +--------+---------+----+------+--------+----------+
//! | magic  | version | 0  | salt | number | checksum |
//! +--------+---------+----+------+--------+----------+
//! ```

use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::access::{self, read_up_to, write_all};
use super::bytes::{u32_at, u64_at};
use super::files::{File, Folder};
use super::record::Position;
use crate::Error;

/// The manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The next manifest while it is being written.
pub(crate) const NEW_MANIFEST: &str = "MANIFEST.new";
/// The guide of an ordered store.
pub(crate) const GUIDE: &str = "GUIDE";
/// The next one while it is being written.
pub(crate) const NEW_GUIDE: &str = "GUIDE.new";
/// The file whose lock is that of the folder. It is empty and stays in the folder.
pub(crate) const LOCK: &str = "LOCK";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// A [`LogStore`](crate::LogStore).
    Log,
    /// An [`LsmStore`](crate::LsmStore).
    Lsm,
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log store",
            Self::Lsm => "ordered store",
        })
    }
}

/// A kind of numbered file: the end of its name, and the start of its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKind {
    suffix: &'static str,
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
}

/// A segment of the log.
pub(crate) const SEGMENT: FileKind = FileKind { suffix: ".log", magic: *b"koellog\n", version: 1 };
/// The hint of a segment; its header goes on.
pub(crate) const HINT: FileKind = FileKind { suffix: ".hint", magic: *b"koelhnt\n", version: 1 };
/// A table.
pub(crate) const TABLE: FileKind = FileKind { suffix: ".table", magic: *b"koeltbl\n", version: 1 };
/// The guide. It is the only one of its kind, so no name has its number.
pub(crate) const GUIDE_KIND: FileKind = FileKind { suffix: "", magic: *b"koelgid\n", version: 1 };

/// Bytes of the header.
pub(crate) const HEADER: usize = 40;

impl FileKind {
    /// Returns the name of file `number`.
    pub(crate) fn name(self, number: u64) -> String {
        format!("{number:016x}{}", self.suffix)
    }

    /// Returns the number in `name`, if that is the name of such a file.
    pub(crate) fn number_in(self, name: &str) -> Option<u64> {
        let number = u64::from_str_radix(name.strip_suffix(self.suffix)?, 16).ok()?;
        (self.name(number) == name).then_some(number)
    }

    /// Returns the header of file `number` of the store with this salt.
    pub(crate) fn header(self, salt: u64, number: u64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&number.to_le_bytes());
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// An open numbered file, and what its bytes are checked against.
#[derive(Clone, Debug)]
pub(crate) struct NumberedFile {
    pub(crate) file: Arc<dyn File>,
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) salt: u64,
}

impl NumberedFile {
    /// Creates file `number`, without its header.
    pub(crate) fn create(
        folder: &dyn Folder,
        kind: FileKind,
        (salt, number): (u64, u64),
    ) -> Result<Self, Error> {
        let name = kind.name(number);
        let file = folder.create(&name).map_err(Error::io("create", &name))?;
        Ok(Self { file, name, number, salt })
    }

    /// Opens file `number` and checks its header.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::OtherStore`], [`Error::Damaged`], also if there is none.
    pub(crate) fn open(
        folder: &dyn Folder,
        kind: FileKind,
        (salt, number): (u64, u64),
    ) -> Result<Self, Error> {
        let missing = || Error::damaged(&kind.name(number), 0, "the file is missing");
        let opened = Self::open_unchecked(folder, kind, (salt, number))?.ok_or_else(missing)?;
        let bytes = opened.header()?;
        if bytes == kind.header(salt, number) {
            return Ok(opened);
        }
        let is_sound = bytes[..8] == kind.magic && u64_at(&bytes, 32) == xxh3_64(&bytes[..32]);
        let version = u32_at(&bytes, 8);
        if is_sound && version > kind.version {
            Err(Error::Newer { file: opened.name, version })
        } else if is_sound && u64_at(&bytes, 16) != salt {
            Err(Error::OtherStore { file: opened.name })
        } else {
            Err(opened.damaged(0, "the header is not the one of this file"))
        }
    }

    /// Opens file `number`, if there is one, without checking its header.
    pub(crate) fn open_unchecked(
        folder: &dyn Folder,
        kind: FileKind,
        (salt, number): (u64, u64),
    ) -> Result<Option<Self>, Error> {
        let name = kind.name(number);
        let file = access::open(folder, &name)?;
        Ok(file.map(|file| Self { file, name, number, salt }))
    }

    /// Returns the salt in the header of file `number`, if there is one and its header is sound.
    pub(crate) fn salt_in(
        folder: &dyn Folder,
        kind: FileKind,
        number: u64,
    ) -> Result<Option<u64>, Error> {
        let Some(opened) = Self::open_unchecked(folder, kind, (0, number))? else {
            return Ok(None);
        };
        let bytes = opened.header()?;
        let salt = u64_at(&bytes, 16);
        Ok((bytes == kind.header(salt, number)).then_some(salt))
    }

    /// Returns the first bytes, with zeros if the file has fewer.
    fn header(&self) -> Result<[u8; HEADER], Error> {
        let mut bytes = [0; HEADER];
        self.read_up_to(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Returns the position of the bytes at `offset`, which their checksum covers.
    #[inline]
    pub(crate) fn position(&self, offset: u64) -> Position {
        Position { salt: self.salt, segment: self.number, offset }
    }

    /// Returns the length of the file.
    pub(crate) fn len(&self) -> Result<u64, Error> {
        self.file.len().map_err(Error::io("measure", &self.name))
    }

    /// Reads until `into` is full or the file ends. Returns the number of bytes read.
    #[inline]
    pub(crate) fn read_up_to(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        read_up_to(&*self.file, into, offset).map_err(Error::io("read", &self.name))
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all(&*self.file, bytes, offset).map_err(Error::io("write", &self.name))
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> Error {
        Error::damaged(&self.name, offset, what)
    }
}
