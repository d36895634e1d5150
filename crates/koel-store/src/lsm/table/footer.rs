//! The two ends of a table file: the header, and the footer that leads to everything else.
//!
//! ```text
//! 0          8        16       24         32
//! +----------+--------+--------+----------+
//! | offset   | stored | magic  | checksum |
//! | of the properties |        |          |
//! +----------+--------+--------+----------+
//! ```
//!
//! The checksum covers what is before it, the salt, the number of the file, and the offset of the
//! footer.

use super::frame::Handle;
use crate::kernel::bytes::u64_at;
use crate::kernel::file_header::FileKind;
use crate::kernel::record::Position;

/// The header of a table file.
pub(in crate::lsm) const FILE: FileKind = FileKind { magic: *b"koeltbl\n", version: 1 };

/// Bytes of the footer.
pub(super) const SIZE: usize = 32;

const MAGIC: [u8; 8] = *b"koelend\n";

/// Returns the footer of a file whose properties are at `properties`.
pub(super) fn encode(properties: Handle, position: Position) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&properties.offset.to_le_bytes());
    bytes[8..16].copy_from_slice(&properties.stored.to_le_bytes());
    bytes[16..24].copy_from_slice(&MAGIC);
    let checksum = position.checksum(0, &bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns where the properties are, if the footer is sound at this position.
pub(super) fn decode(bytes: &[u8; SIZE], position: Position) -> Option<Handle> {
    let properties = Handle { offset: u64_at(bytes, 0), stored: u64_at(bytes, 8) };
    (*bytes == encode(properties, position)).then_some(properties)
}
