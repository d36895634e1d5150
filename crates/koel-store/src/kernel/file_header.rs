//! The header of a numbered file: what kind of file it is, and whose.
//!
//! ```text
//! 0        8         12   16     24       32         40
//! +--------+---------+----+------+--------+----------+
//! | magic  | version | 0  | salt | number | checksum |
//! +--------+---------+----+------+--------+----------+
//! ```

use xxhash_rust::xxh3::xxh3_64;

use super::access::{self, read_up_to};
use super::bytes::{u32_at, u64_at};
use super::files::Folder;
use crate::Error;

/// Bytes of the header.
pub(crate) const SIZE: usize = 40;

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKind {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
}

impl FileKind {
    /// Returns the header of file `number` of the store with this salt.
    pub(crate) fn header(self, salt: u64, number: u64) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&number.to_le_bytes());
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Checks the first bytes of file `name`, zeros if it has fewer.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::OtherStore`], [`Error::Damaged`].
    pub(crate) fn check(
        self,
        bytes: &[u8; SIZE],
        (salt, number): (u64, u64),
        name: &str,
    ) -> Result<(), Error> {
        if *bytes == self.header(salt, number) {
            return Ok(());
        }
        let is_sound = bytes[..8] == self.magic && u64_at(bytes, 32) == xxh3_64(&bytes[..32]);
        let version = u32_at(bytes, 8);
        if is_sound && version > self.version {
            Err(Error::Newer { file: name.to_owned(), version })
        } else if is_sound && u64_at(bytes, 16) != salt {
            Err(Error::OtherStore { file: name.to_owned() })
        } else {
            Err(Error::damaged(name, 0, "the header is not the one of this file"))
        }
    }

    /// Returns the salt in the header of file `number`, if there is one and its header is sound.
    pub(crate) fn salt_in(
        self,
        folder: &dyn Folder,
        name: &str,
        number: u64,
    ) -> Result<Option<u64>, Error> {
        let Some(file) = access::open(folder, name)? else { return Ok(None) };
        let mut bytes = [0; SIZE];
        read_up_to(&*file, &mut bytes, 0).map_err(Error::io("read", name))?;
        let salt = u64_at(&bytes, 16);
        Ok((bytes == self.header(salt, number)).then_some(salt))
    }
}
