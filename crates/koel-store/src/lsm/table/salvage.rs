//! Reading what is left of a damaged table.
//!
//! Frames are looked for from the start of the file to its end; behind a damaged one, at every
//! byte. So neither the index nor the footer is needed, and what follows damage is found.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::block::Block;
use super::frame::{self, FrameHeader, HEADER, Kind, MAX_RAW, Unsealed};
use crate::Error;
use crate::kernel::access::{self, read_up_to};
use crate::kernel::bytes::usize_of;
use crate::kernel::damage::{Damage, collect_damage};
use crate::kernel::files::{File, Folder};
use crate::kernel::record::Position;
use crate::kernel::{file_header, file_names, memory};
use crate::lsm::entry::Entry;

/// Bytes that are searched with one read.
const WINDOW: usize = 64 << 10;

/// A table file that may be damaged.
#[derive(Debug)]
pub(in crate::lsm) struct DamagedTable {
    file: Arc<dyn File>,
    name: String,
    salt: u64,
    number: u64,
    len: u64,
}

/// A sound frame.
struct Sound {
    kind: Kind,
    offset: u64,
    block: Unsealed,
}

/// Takes a sound frame, and adds what is wrong with its contents to the list.
type EachSound<'a> = dyn FnMut(&mut Vec<Damage>, Sound) -> Result<(), Error> + 'a;

impl DamagedTable {
    /// Opens the file of table `number`. Returns `None` if there is none, or none that can be read.
    pub(in crate::lsm) fn open(
        folder: &dyn Folder,
        number: u64,
        salt: u64,
    ) -> Result<Option<Self>, Error> {
        let name = file_names::table(number);
        let opened = collect_damage(&mut Vec::new(), access::open(folder, &name))?;
        let Some(file) = opened.flatten() else { return Ok(None) };
        let len = file.len().map_err(Error::io("read", &name))?;
        Ok(Some(Self { file, name, salt, number, len }))
    }

    /// Calls `each` with every entry of the sound blocks, in the order of the file, and adds what
    /// is damaged to `damages`.
    pub(in crate::lsm) fn entries(
        &self,
        damages: &mut Vec<Damage>,
        each: &mut dyn FnMut(Entry<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut key = Vec::new();
        self.frames(damages, &mut |damages, Sound { kind, offset, block }| {
            if kind != Kind::Data {
                return Ok(());
            }
            let block = Block::of_data(block.bytes, block.start);
            let count = block.as_ref().map_or(0, Block::count);
            let entries = block.as_ref().map(|block| (0..count).map_while(|at| block.entry(at)));
            let mut sound = 0;
            for entry in entries.into_iter().flatten() {
                entry.copy_key(&mut key)?;
                let value = entry.value.zip(block.as_ref()).map(|(at, block)| block.value(at));
                each(Entry { key: &key, sequence: entry.sequence, value })?;
                sound += 1;
            }
            if sound < count || block.is_none() {
                let what = "the entries of the block are not sound";
                damages.push(Damage::new(&self.name, offset, what));
            }
            Ok(())
        })
    }

    /// Returns the hashes of the keys that the table had and that [`entries`](Self::entries) does
    /// not have any more, in ascending order. Hashes that were damaged too are not among them.
    ///
    /// Takes 16 bytes of memory for each key.
    pub(in crate::lsm) fn lost_hashes(&self, seed: u64) -> Result<Vec<u64>, Error> {
        let (mut had, mut has) = (Vec::new(), Vec::new());
        self.frames(&mut Vec::new(), &mut |_, frame| {
            let (hashes, _) = frame.block.raw().as_chunks();
            if frame.kind == Kind::Hashes {
                memory::reserve(&mut had, hashes.len())?;
                had.extend(hashes.iter().map(|hash| u64::from_le_bytes(*hash)));
            }
            Ok(())
        })?;
        self.entries(&mut Vec::new(), &mut |entry| {
            let hash = xxh3_64_with_seed(entry.key, seed);
            if has.last() == Some(&hash) { Ok(()) } else { memory::push(&mut has, hash) }
        })?;
        has.sort_unstable();
        had.retain(|hash| has.binary_search(hash).is_err());
        had.sort_unstable();
        had.dedup();
        Ok(had)
    }

    /// Calls `each` with every sound frame.
    fn frames(&self, damages: &mut Vec<Damage>, each: &mut EachSound<'_>) -> Result<(), Error> {
        let end = self.end_of_frames(damages)?;
        let mut offset = file_header::SIZE as u64;
        while offset < end {
            let Some((header, frame)) = self.frame(offset, end)? else {
                damages.push(Damage::new(&self.name, offset, "the checksum does not match"));
                offset = self.next_frame(offset + 1, end)?;
                continue;
            };
            match frame {
                Some(block) => each(damages, Sound { kind: header.kind, offset, block })?,
                None => {
                    let what = "the block cannot be decompressed";
                    damages.push(Damage::new(&self.name, offset, what));
                }
            }
            offset += HEADER as u64 + header.stored;
        }
        Ok(())
    }

    /// Returns the offset of the footer, or the end of the file if the footer is not sound.
    fn end_of_frames(&self, damages: &mut Vec<Damage>) -> Result<u64, Error> {
        let mut bytes = [0; frame::FOOTER];
        let start = self.len.saturating_sub(bytes.len() as u64);
        self.read(&mut bytes, start)?;
        let position = Position { salt: self.salt, segment: self.number, offset: start };
        if frame::decode_footer(&bytes, position).is_some() {
            return Ok(start);
        }
        damages.push(Damage::new(&self.name, start, "the footer is not sound"));
        Ok(self.len)
    }

    /// Returns the frame at `offset`, if it is sound. The inner `None`: it cannot be decompressed.
    fn frame(
        &self,
        offset: u64,
        end: u64,
    ) -> Result<Option<(FrameHeader, Option<Unsealed>)>, Error> {
        let mut bytes = vec![0; HEADER];
        let read = self.read(&mut bytes, offset)?;
        let header = bytes.first_chunk().filter(|_| read == HEADER).and_then(FrameHeader::decode);
        let left = (end - offset).saturating_sub(HEADER as u64);
        let Some(header) = header.filter(|header| header.stored <= left.min(MAX_RAW)) else {
            return Ok(None);
        };
        memory::grow_to(&mut bytes, HEADER + usize_of(header.stored))?;
        let read = self.read(&mut bytes, offset)?;
        bytes.truncate(read);
        let position = Position { salt: self.salt, segment: self.number, offset };
        match frame::check(&bytes, position) {
            Some(header) => Ok(Some((header, frame::decompress(bytes, header)?))),
            None => Ok(None),
        }
    }

    /// Returns the offset of the first sound frame at `from` or behind it, or `end`.
    fn next_frame(&self, mut from: u64, end: u64) -> Result<u64, Error> {
        let mut window = vec![0; WINDOW];
        while from < end {
            let read = self.read(&mut window, from)?;
            let starts = window[..read].windows(HEADER).enumerate();
            for (at, bytes) in starts {
                let header = bytes.first_chunk().and_then(FrameHeader::decode);
                if header.is_some() && self.frame(from + at as u64, end)?.is_some() {
                    return Ok(from + at as u64);
                }
            }
            if read < WINDOW {
                break;
            }
            from += (WINDOW - HEADER + 1) as u64;
        }
        Ok(end)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        read_up_to(&*self.file, into, offset).map_err(Error::io("read", &self.name))
    }
}
