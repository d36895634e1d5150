//! The file of a table: a header, frames, and a footer that leads to everything else.
//!
//! A *frame* is a block as it is in the file, with a checksum of its bytes and its place:
//!
//! ```text
//! 0          8      9       10  12       16       20
//! +----------+------+-------+---+--------+--------+---------------+
//! | checksum | kind | codec | 0 | stored | raw    | stored bytes  |
//! |          |      |       |   | length | length |               |
//! +----------+------+-------+---+--------+--------+---------------+
//! ```
//!
//! The checksum covers everything behind it, and the salt of the store, the number of the file and
//! the offset: a frame in the wrong place does not match. Lengths are checked before memory is
//! taken. A frame describes itself, so that those behind a damaged one are found without an index.
//!
//! The footer:
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

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use crate::Error;
use crate::kernel::bytes::{u16_at, u32_at, u64_at, usize_of};
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::kernel::record::Position;
use crate::kernel::store_files::{NumberedFile, TABLE};

/// Bytes before the stored ones.
pub(super) const HEADER: usize = 20;

/// The longest block before compression: a key and a value of the greatest length, and room for
/// the numbers of the block. Several long keys of an index fit too.
pub(super) const MAX_RAW: u64 = (256 << 20) + (1 << 20);

/// Hashes in each frame of hashes but the last.
pub(super) const HASHES: u64 = 8192;

const ZSTD_LEVEL: i32 = 3;
/// LZ4 makes at most this many bytes of one: a byte of a length stands for 255 bytes, every other
/// byte for fewer.
const LZ4_RATIO: u64 = 255;

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Entries.
    Data = 1,
    /// Where blocks are, by their last key.
    Index = 2,
    /// Hashes of keys.
    Hashes = 3,
    /// The offsets of the frames of hashes.
    List = 4,
    /// What is known of the table.
    Properties = 5,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Data, Self::Index, Self::Hashes, Self::List, Self::Properties];
}

/// How the blocks of a table are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lsm) enum Codec {
    None = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Codec {
    const ALL: [Self; 3] = [Self::None, Self::Lz4, Self::Zstd];
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) offset: u64,
    /// Bytes that are stored, without the header.
    pub(super) stored: u64,
}

impl Handle {
    /// Returns the offset behind the frame.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(HEADER as u64).saturating_add(self.stored)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: Kind,
    codec: Codec,
    pub(super) stored: u64,
    raw: u64,
}

impl FrameHeader {
    /// Decodes a header. Returns `None` if no frame has it.
    pub(super) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == bytes[8])?;
        let codec = Codec::ALL.into_iter().find(|codec| *codec as u8 == bytes[9])?;
        let (stored, raw) = (u64::from(u32_at(bytes, 12)), u64::from(u32_at(bytes, 16)));
        let fits = match codec {
            Codec::None => stored == raw,
            Codec::Lz4 => stored < raw && raw <= LZ4_RATIO * stored,
            Codec::Zstd => stored < raw,
        };
        let is_sound = fits && raw <= MAX_RAW && u16_at(bytes, 10) == 0;
        is_sound.then_some(Self { kind, codec, stored, raw })
    }

    fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        (bytes[8], bytes[9]) = (self.kind as u8, self.codec as u8);
        let length = |length| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        bytes[12..16].copy_from_slice(&length(self.stored));
        bytes[16..].copy_from_slice(&length(self.raw));
        bytes
    }
}

/// Appends the frame of `raw` at `position` to `into`. Returns the bytes that are stored.
pub(super) fn seal(
    kind: Kind,
    codec: Codec,
    raw: &[u8],
    position: Position,
    into: &mut Vec<u8>,
) -> Result<u64, Error> {
    let start = into.len();
    let body = start + HEADER;
    memory::reserve(into, HEADER + raw.len())?;
    into.resize(body, 0);
    let packed = match codec {
        Codec::None => None,
        Codec::Lz4 => lz4(raw, into)?,
        Codec::Zstd => zstd(raw, into)?,
    };
    // Less than an eighth is not worth the time of decompression.
    let packed = packed.filter(|len| *len <= raw.len() - raw.len() / 8);
    into.truncate(body + packed.unwrap_or(0));
    if packed.is_none() {
        into.extend_from_slice(raw);
    }
    let stored = (into.len() - body) as u64;
    let codec = if packed.is_some() { codec } else { Codec::None };
    let header = FrameHeader { kind, codec, stored, raw: raw.len() as u64 };
    into[start..body].copy_from_slice(&header.encode());
    let checksum = position.checksum(0, &into[start + 8..]);
    into[start..start + 8].copy_from_slice(&checksum.to_le_bytes());
    Ok(stored)
}

/// Appends `raw`, compressed. Returns the bytes that it takes, or `None` if it cannot be done.
fn lz4(raw: &[u8], into: &mut Vec<u8>) -> Result<Option<usize>, Error> {
    let start = into.len();
    memory::grow_to(into, start + lz4_flex::block::get_maximum_output_size(raw.len()))?;
    Ok(lz4_flex::block::compress_into(raw, &mut into[start..]).ok())
}

/// Appends `raw`, compressed. Returns the bytes that it takes, or `None` if it cannot be done.
fn zstd(raw: &[u8], into: &mut Vec<u8>) -> Result<Option<usize>, Error> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
            RefCell::new(Compressor::new(ZSTD_LEVEL).ok());
    }
    let start = into.len();
    memory::grow_to(into, start + raw.len())?;
    Ok(COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.as_mut()?.compress_to_buffer(raw, &mut into[start..]).ok()
    }))
}

/// About what zstd needs to decompress.
const NO_DECOMPRESSOR: Error = Error::OutOfMemory { bytes: 96 << 10 };

/// Bytes of a block, from `start` on.
#[derive(Debug)]
pub(super) struct Unsealed {
    pub(super) bytes: Vec<u8>,
    pub(super) start: usize,
}

impl Unsealed {
    pub(super) fn raw(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Reads a frame of a file that has `len` bytes, checks it and decompresses it.
pub(super) fn read(
    file: &NumberedFile,
    len: u64,
    (handle, kind): (Handle, Kind),
) -> Result<Unsealed, Error> {
    let damaged = |what| file.damaged(handle.offset, what);
    if handle.end() > len || handle.stored > MAX_RAW {
        return Err(damaged("the file ends before the block does"));
    }
    let mut bytes = Vec::new();
    memory::grow_to(&mut bytes, HEADER + usize_of(handle.stored))?;
    let read = file.read_up_to(&mut bytes, handle.offset)?;
    bytes.truncate(read);
    let header = check(&bytes, file.position(handle.offset));
    let header = header.ok_or_else(|| damaged("the checksum does not match"))?;
    if header.kind != kind || header.stored != handle.stored {
        return Err(damaged("it is another block than the one that is expected"));
    }
    decompress(bytes, header)?.ok_or_else(|| damaged("the block cannot be decompressed"))
}

/// Returns the header of a frame that has these bytes, if it is sound at this position.
#[inline]
pub(super) fn check(bytes: &[u8], position: Position) -> Option<FrameHeader> {
    let header = FrameHeader::decode(bytes.first_chunk()?)?;
    let is_sound = bytes.len() as u64 == HEADER as u64 + header.stored
        && bytes[..8] == position.checksum(0, &bytes[8..]).to_le_bytes();
    is_sound.then_some(header)
}

/// Returns the block of a frame that was checked, `None` if it does not decompress to its length.
pub(super) fn decompress(bytes: Vec<u8>, header: FrameHeader) -> Result<Option<Unsealed>, Error> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    if header.codec == Codec::None {
        return Ok(Some(Unsealed { bytes, start: HEADER }));
    }
    let (stored, len) = (&bytes[HEADER..], usize_of(header.raw));
    let mut raw = Vec::new();
    let written = if header.codec == Codec::Lz4 {
        memory::grow_to(&mut raw, len)?;
        lz4_flex::block::decompress_into(stored, &mut raw).ok()
    } else {
        memory::reserve(&mut raw, len)?;
        DECOMPRESSOR.with_borrow_mut(|kept| -> Result<_, Error> {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                // No memory is no damage, and may be there for the next block.
                None => kept.insert(Decompressor::new().map_err(|_| NO_DECOMPRESSOR)?),
            };
            Ok(decompressor.decompress_to_buffer(stored, &mut raw).ok())
        })?
    };
    let is_whole = written == Some(len) && raw.len() == len;
    Ok(is_whole.then_some(Unsealed { bytes: raw, start: 0 }))
}

/// Bytes of the footer.
pub(super) const FOOTER: usize = 32;

const MAGIC: [u8; 8] = *b"koelend\n";

/// Returns the footer of a file whose properties are at `properties`.
fn encode_footer(properties: Handle, position: Position) -> [u8; FOOTER] {
    let mut bytes = [0; FOOTER];
    bytes[..8].copy_from_slice(&properties.offset.to_le_bytes());
    bytes[8..16].copy_from_slice(&properties.stored.to_le_bytes());
    bytes[16..24].copy_from_slice(&MAGIC);
    let checksum = position.checksum(0, &bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns where the properties are, if the footer is sound at this position.
pub(super) fn decode_footer(bytes: &[u8; FOOTER], position: Position) -> Option<Handle> {
    let properties = Handle { offset: u64_at(bytes, 0), stored: u64_at(bytes, 8) };
    (*bytes == encode_footer(properties, position)).then_some(properties)
}

/// Bytes that are written with one call.
const WRITE: usize = 256 << 10;

/// A file to which frames are appended.
#[derive(Debug)]
pub(super) struct FrameWriter {
    file: NumberedFile,
    /// Bytes that are not written yet.
    unwritten: Vec<u8>,
    /// Bytes that are written.
    written: u64,
}

impl FrameWriter {
    /// Creates the file of table `number`, and its header.
    pub(super) fn new(folder: &dyn Folder, number: u64, salt: u64) -> Result<Self, Error> {
        let file = NumberedFile::create(folder, TABLE, (salt, number))?;
        let unwritten = memory::copy_of(&TABLE.header(salt, number))?;
        Ok(Self { file, unwritten, written: 0 })
    }

    /// The error of an input of the table that was damaged.
    pub(super) fn damaged(&self, what: &'static str) -> Error {
        self.file.damaged(self.len(), what)
    }

    /// Returns the bytes of the file, those that are not written yet included.
    pub(super) fn len(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    /// Appends the frame of a block.
    pub(super) fn append(&mut self, kind: Kind, codec: Codec, raw: &[u8]) -> Result<Handle, Error> {
        let position = self.file.position(self.len());
        let stored = seal(kind, codec, raw, position, &mut self.unwritten)?;
        if self.unwritten.len() >= WRITE {
            self.write()?;
        }
        Ok(Handle { offset: position.offset, stored })
    }

    fn write(&mut self) -> Result<(), Error> {
        self.file.write(&self.unwritten, self.written)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.unwritten.shrink_to(2 * WRITE + HEADER);
        Ok(())
    }

    /// Appends the footer and makes the file durable.
    pub(super) fn finish(mut self, properties: Handle) -> Result<(), Error> {
        let footer = encode_footer(properties, self.file.position(self.len()));
        memory::reserve(&mut self.unwritten, footer.len())?;
        self.unwritten.extend_from_slice(&footer);
        self.write()?;
        self.file.file.sync().map_err(Error::io("sync", &self.file.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: Position = Position { salt: 1, segment: 2, offset: 3 };

    /// A frame of a MiB of zeros, whose header claims another length, with a checksum that fits.
    fn forged(codec: Codec, raw: u32) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        seal(Kind::Data, codec, &vec![0; 1 << 20], POSITION, &mut bytes)?;
        bytes[16..HEADER].copy_from_slice(&raw.to_le_bytes());
        let checksum = POSITION.checksum(0, &bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    #[test]
    fn a_block_with_a_forged_length_is_refused() -> Result<(), Error> {
        for codec in [Codec::Lz4, Codec::Zstd] {
            let sound = forged(codec, 1 << 20)?;
            let header = check(&sound, POSITION).expect("a sound frame");
            assert!(sound.len() < 5000 && header.codec == codec);
            let block = decompress(sound, header)?.expect("a sound block");
            assert!(block.raw().len() == 1 << 20 && block.raw().iter().all(|&byte| byte == 0));
            let most = u32::try_from(MAX_RAW).expect("less than 4 GiB");
            for raw in [most + 1, u32::MAX] {
                assert_eq!(check(&forged(codec, raw)?, POSITION), None, "{codec:?}, {raw}");
            }
            for raw in [10_000, (1 << 20) - 1, (1 << 20) + 1, most] {
                let bytes = forged(codec, raw)?;
                // LZ4 cannot make so much of so few bytes.
                let Some(header) = check(&bytes, POSITION) else {
                    assert!(codec == Codec::Lz4 && raw > 1 << 20, "{codec:?}, {raw}");
                    continue;
                };
                assert!(decompress(bytes, header)?.is_none(), "{codec:?}, {raw}");
            }
        }
        Ok(())
    }
}
