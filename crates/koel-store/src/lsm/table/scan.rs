//! A table file read from its start to its end: what a check and a salvage have in common.
//!
//! Frames follow one another; behind a damaged one, the next is looked for at every byte. So
//! neither the index nor the footer is needed, and what follows damage is found.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::block::Block;
use super::frame::{self, FrameHeader, HEADER, Handle, Kind, MAX_RAW, Unsealed};
use crate::Error;
use crate::error::{Damage, collect_damage};
use crate::kernel::bytes::usize_of;
use crate::kernel::files::Folder;
use crate::kernel::memory;
use crate::kernel::store_files::{self, NumberedFile, TABLE};
use crate::lsm::entry::Entry;

/// Bytes that are searched with one read.
const WINDOW: usize = 64 << 10;

/// What is wrong with a block that was written wrongly: its checksum matches.
pub(super) const UNSOUND: &str = "the entries of the block are not sound";

/// A table file that may be damaged.
#[derive(Debug)]
pub(in crate::lsm) struct TableFile {
    file: NumberedFile,
    len: u64,
}

/// A sound frame.
pub(super) struct Sound {
    pub(super) kind: Kind,
    pub(super) at: Handle,
    pub(super) block: Unsealed,
}

/// Takes a sound frame, and adds what is wrong with its contents to the list.
type EachSound<'a> = dyn FnMut(&mut Vec<Damage>, Sound) -> Result<(), Error> + 'a;

impl TableFile {
    /// Opens the file of table `number`. Returns `None` if there is none, or none that can be read.
    pub(in crate::lsm) fn open(
        folder: &dyn Folder,
        number: u64,
        salt: u64,
    ) -> Result<Option<Self>, Error> {
        let opened = NumberedFile::open_unchecked(folder, TABLE, (salt, number));
        let opened = collect_damage(&mut Vec::new(), opened)?.flatten();
        opened.map(|file| Ok(Self { len: file.len()?, file })).transpose()
    }

    /// Calls `each` with every entry of the sound blocks, in the order of the file, and adds what
    /// is damaged to `damages`.
    pub(in crate::lsm) fn entries(
        &self,
        damages: &mut Vec<Damage>,
        each: &mut dyn FnMut(Entry<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.frames(damages, &mut |damages, Sound { kind, at, block }| match kind {
            Kind::Data => self.each_entry(damages, at, block, &mut |entry, _| each(entry)),
            _ => Ok(()),
        })
    }

    /// Calls `each` with the entries of a block of data and their tags.
    pub(super) fn each_entry(
        &self,
        damages: &mut Vec<Damage>,
        at: Handle,
        block: Unsealed,
        each: &mut dyn FnMut(Entry<'_>, u8) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let unsound = || self.damage(at.offset, UNSOUND);
        let block = Block::of_data(block.bytes, block.start).filter(|block| block.count() > 0);
        let Some(block) = block else {
            damages.push(unsound());
            return Ok(());
        };
        let mut key = Vec::new();
        for (number, &tag) in block.tags().iter().enumerate() {
            let Some(entry) = block.entry(number) else {
                damages.push(unsound());
                break;
            };
            entry.copy_key(&mut key)?;
            let value = entry.value.map(|value| block.value(value));
            each(Entry { key: &key, sequence: entry.sequence, value }, tag)?;
        }
        Ok(())
    }

    /// Returns the number of hashes that the table still has, and those of keys that
    /// [`entries`](Self::entries) does not have any more, in ascending order. If versions of one
    /// key `may_span` several blocks, the keys on both sides of damage are among these.
    ///
    /// Takes 16 bytes of memory for each key.
    pub(in crate::lsm) fn lost_hashes(
        &self,
        seed: u64,
        may_span: bool,
    ) -> Result<(u64, Vec<u64>), Error> {
        let (mut had, mut has, mut damages) = (Vec::new(), Vec::new(), Vec::new());
        let (mut last, mut passed) = (None, 0);
        self.frames(&mut damages, &mut |damages, Sound { kind, at, block }| match kind {
            Kind::Hashes => {
                let (hashes, _) = block.raw().as_chunks();
                memory::reserve(&mut had, hashes.len())?;
                had.extend(hashes.iter().map(|hash| u64::from_le_bytes(*hash)));
                Ok(())
            }
            Kind::Data => {
                let before = damages.len();
                self.each_entry(damages, at, block, &mut |entry, _| {
                    let hash = Some(xxh3_64_with_seed(entry.key, seed));
                    if may_span && before > passed {
                        passed = before;
                        has.pop();
                        last = hash;
                    }
                    if last == hash {
                        return Ok(());
                    }
                    last = hash;
                    hash.map_or(Ok(()), |hash| memory::push(&mut has, hash))
                })
            }
            _ => Ok(()),
        })?;
        if may_span && damages.len() > passed {
            has.pop();
        }
        let count = had.len() as u64;
        has.sort_unstable();
        had.retain(|hash| has.binary_search(hash).is_err());
        had.sort_unstable();
        had.dedup();
        Ok((count, had))
    }

    /// Calls `each` with every sound frame, and adds what is damaged to `damages`.
    pub(super) fn frames(
        &self,
        damages: &mut Vec<Damage>,
        each: &mut EachSound<'_>,
    ) -> Result<(), Error> {
        let end = self.end_of_frames(damages)?;
        let mut offset = store_files::HEADER as u64;
        while offset < end {
            let Some((header, frame)) = self.frame(offset, end)? else {
                damages.push(self.damage(offset, "the checksum does not match"));
                offset = self.next_frame(offset + 1, end)?;
                continue;
            };
            let at = Handle { offset, stored: header.stored };
            match frame {
                Some(block) => each(damages, Sound { kind: header.kind, at, block })?,
                None => damages.push(self.damage(offset, "the block cannot be decompressed")),
            }
            offset = at.end();
        }
        Ok(())
    }

    pub(super) fn damage(&self, offset: u64, what: &'static str) -> Damage {
        Damage::new(&self.file.name, offset, what)
    }

    /// Returns the offset of the footer, or the end of the file if the footer is not sound.
    fn end_of_frames(&self, damages: &mut Vec<Damage>) -> Result<u64, Error> {
        let mut bytes = [0; frame::FOOTER];
        let start = self.len.saturating_sub(bytes.len() as u64);
        self.file.read_up_to(&mut bytes, start)?;
        if frame::decode_footer(&bytes, self.file.position(start)).is_some() {
            return Ok(start);
        }
        damages.push(self.damage(start, "the footer is not sound"));
        Ok(self.len)
    }

    /// Returns the frame at `offset`, if it is sound. The inner `None`: it cannot be decompressed.
    fn frame(
        &self,
        offset: u64,
        end: u64,
    ) -> Result<Option<(FrameHeader, Option<Unsealed>)>, Error> {
        let mut bytes = vec![0; HEADER];
        let read = self.file.read_up_to(&mut bytes, offset)?;
        let header = bytes.first_chunk().filter(|_| read == HEADER).and_then(FrameHeader::decode);
        let left = (end - offset).saturating_sub(HEADER as u64);
        let Some(header) = header.filter(|header| header.stored <= left.min(MAX_RAW)) else {
            return Ok(None);
        };
        memory::grow_to(&mut bytes, HEADER + usize_of(header.stored))?;
        let read = self.file.read_up_to(&mut bytes, offset)?;
        bytes.truncate(read);
        match frame::check(&bytes, self.file.position(offset)) {
            Some(header) => Ok(Some((header, frame::decompress(bytes, header)?))),
            None => Ok(None),
        }
    }

    /// Returns the offset of the first sound frame at `from` or behind it, or `end`.
    fn next_frame(&self, mut from: u64, end: u64) -> Result<u64, Error> {
        let mut window = vec![0; WINDOW];
        while from < end {
            let read = self.file.read_up_to(&mut window, from)?;
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
}
