//! A segment: one file of records, appended to until it is full and never written to again.
//!
//! ```text
//! 0        40
//! +--------+---------+---------+
//! | header | record  | record  | ..     the header: store_files.rs
//! +--------+---------+---------+
//! ```
//!
//! Numbers are never reused, so neither are names. The file does not say where its records end: the
//! manifest does, for every segment except the one being written.

use std::io;
use std::ops::{Deref, Range, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bytes::usize_of;
use super::damaged::DamagedPlaces;
use super::events::tell;
use super::files::Folder;
use super::memory;
use super::record::{self, BlockSize, BodyCheck, Header};
use super::store_files::{NumberedFile, SEGMENT};
use super::threads::{Counter, lock};
use crate::Error;
use crate::error::FOLDER;

/// Valid sizes of a segment in bytes, unless it holds a single, longer record. The maximum is more
/// than any record has.
pub(crate) const SIZES: RangeInclusive<u64> = 4 << 10..=16 << 30;

/// Offset of the first record.
pub(crate) const FIRST_RECORD: u64 = 40;

/// Bytes of the shortest read of a record: smaller reads cost the same.
const MIN_READ: u64 = 512;
/// Bytes of the longest first read of a record. Only a very long key makes a body longer.
const MAX_FIRST_READ: u64 = 96 << 10;
/// A longer body is checked in pieces of this many bytes before it is read.
const LONG_BODY: usize = 1 << 20;

/// Bytes of memory that a large value starts with.
const FIRST_BLOCKS: usize = 1 << 20;

/// An open segment, and what is known of its records.
#[derive(Debug)]
pub(crate) struct Segment {
    file: NumberedFile,
    /// Bytes of the file that are header and records.
    end: AtomicU64,
    /// Bytes of records that compaction would drop now, without tombstones.
    pub(crate) dead: Counter,
    /// Bytes of tombstones.
    pub(crate) tombstones: Counter,
    /// A sequence number: the segment has no record that was dead when the log had reached it.
    pub(crate) cleaned: Counter,
    /// The greatest sequence number of the records.
    pub(crate) last_sequence: Counter,
    /// Bytes of records, without marks.
    record_bytes: Counter,
    /// The number of records that one read can return.
    short_records: Counter,
    /// Bytes of those.
    short_bytes: Counter,
    /// Whether a sync has failed. The lock is held during a sync.
    sync_failed: Mutex<bool>,
    damaged_places: DamagedPlaces,
}

impl Deref for Segment {
    type Target = NumberedFile;

    fn deref(&self) -> &NumberedFile {
        &self.file
    }
}

impl Segment {
    /// Creates the file of a segment, which is to be [made durable](Self::make_durable) next.
    pub(crate) fn create(folder: &dyn Folder, salt: u64, number: u64) -> Result<Self, Error> {
        Ok(Self::of(NumberedFile::create(folder, SEGMENT, (salt, number))?))
    }

    /// Writes the header, and makes the file and its name durable. Removes it if that fails.
    pub(crate) fn make_durable(&self, folder: &dyn Folder) -> Result<(), Error> {
        let durable = self.write_header().and_then(|()| {
            self.sync()?;
            folder.sync().map_err(Error::io("sync", FOLDER))
        });
        if durable.is_err() {
            // What cannot be removed is when the store is next opened.
            drop(folder.remove(&self.name));
        }
        durable
    }

    fn write_header(&self) -> Result<(), Error> {
        self.write(&SEGMENT.header(self.salt, self.number), 0)?;
        self.set_end(FIRST_RECORD);
        Ok(())
    }

    /// Opens a segment and checks its header.
    pub(crate) fn open(folder: &dyn Folder, salt: u64, number: u64) -> Result<Self, Error> {
        Self::whole(NumberedFile::open(folder, SEGMENT, (salt, number))?)
    }

    /// Opens a segment without checking its header. Returns `None` if there is no such file. The
    /// checksums of the records tell whether they belong to it.
    pub(crate) fn open_unchecked(
        folder: &dyn Folder,
        salt: u64,
        number: u64,
    ) -> Result<Option<Self>, Error> {
        let file = NumberedFile::open_unchecked(folder, SEGMENT, (salt, number))?;
        file.map(Self::whole).transpose()
    }

    /// Returns the segment that ends where its file does.
    fn whole(file: NumberedFile) -> Result<Self, Error> {
        let segment = Self::of(file);
        segment.set_end(segment.len()?);
        Ok(segment)
    }

    fn of(file: NumberedFile) -> Self {
        Self {
            file,
            end: AtomicU64::new(0),
            dead: Counter::default(),
            tombstones: Counter::default(),
            cleaned: Counter::default(),
            last_sequence: Counter::default(),
            record_bytes: Counter::default(),
            short_records: Counter::default(),
            short_bytes: Counter::default(),
            sync_failed: Mutex::default(),
            damaged_places: DamagedPlaces::default(),
        }
    }

    /// Returns the offset at which the records end.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// Notes that the segment has a record with this sequence number. Only the thread that writes
    /// or opens the segment calls this and [`add_record`](Self::add_record).
    pub(crate) fn observe_sequence(&self, sequence: u64) {
        self.last_sequence.set(self.last_sequence.get().max(sequence));
    }

    /// Counts a record of this many bytes that is not a mark.
    pub(crate) fn add_record(&self, bytes: u64) {
        self.record_bytes.add_exclusive(bytes);
        if bytes <= MAX_FIRST_READ {
            self.short_records.add_exclusive(1);
            self.short_bytes.add_exclusive(bytes);
        }
    }

    /// Returns the bytes of marks: all bytes that belong to no other record.
    pub(crate) fn marks(&self) -> u64 {
        self.end().saturating_sub(FIRST_RECORD + self.record_bytes.get())
    }

    /// Returns the first damage that was found since the segment was opened, if any was. It keeps
    /// the segment from being compacted with others.
    pub(crate) fn damage(&self) -> Option<Error> {
        self.damaged_places.first().map(|(offset, what)| self.damaged(offset, what))
    }

    /// Notes that these bytes are damaged, if the error says so of this file. Returns whether it
    /// does.
    pub(crate) fn note_if_damage(&self, bytes: Range<u64>, error: &Error) -> bool {
        let Error::Damaged { file, what, .. } = error else { return false };
        let is_here = self.name == *file;
        if is_here {
            tell!(
                warn,
                "damage was met",
                file = self.name.as_str(),
                at = bytes.start,
                what = *what
            );
            self.damaged_places.add(bytes, what);
        }
        is_here
    }

    /// Returns all damaged places that are known.
    pub(crate) fn damaged_places(&self) -> Vec<Range<u64>> {
        self.damaged_places.all()
    }

    /// Returns whether the record at an offset is known to be damaged.
    #[cfg(unix)]
    pub(crate) fn is_damaged_at(&self, offset: u64) -> bool {
        self.damaged_places.has(offset)
    }

    /// Returns how many bytes to read of a record whose length is not known: 1.25 times the average
    /// record, so that one read is enough for most. Large values do not count, since their blocks
    /// are read separately.
    #[inline]
    fn first_read(&self) -> usize {
        let average = self.short_bytes.get() / self.short_records.get().max(1);
        let len = (average + average / 4).next_multiple_of(MIN_READ);
        usize_of(len.clamp(MIN_READ, MAX_FIRST_READ))
    }

    /// Returns the first offset from `offset` on where a record can start: not in a hole of a
    /// sparse file, whose bytes are zeros. Returns `None` if there is none.
    pub(crate) fn next_data(&self, offset: u64) -> Result<Option<u64>, Error> {
        let data = self.file.file.next_data(offset).map_err(Error::io("search", &self.name))?;
        Ok(data.map(|data| offset.max(data - data % record::ALIGNMENT)))
    }

    /// Makes everything written so far durable.
    ///
    /// Runs one sync at a time, and none after a failure: if two threads sync at once and bytes are
    /// lost, the system may report that to only one of them.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let mut failed = lock(&self.sync_failed);
        let before = if *failed { Err(io::Error::other("an earlier sync failed")) } else { Ok(()) };
        let synced = before.and_then(|()| self.file.file.sync());
        *failed = synced.is_err();
        synced.map_err(Error::io("sync", &self.name))
    }

    pub(crate) fn truncate(&self, len: u64) -> Result<(), Error> {
        self.file.file.set_len(len).map_err(Error::io("truncate", &self.name))?;
        self.set_end(len);
        Ok(())
    }

    /// Fills `into`. If the file ends too early, it is damaged.
    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<(), Error> {
        if self.read_up_to(into, offset)? == into.len() {
            Ok(())
        } else {
            Err(self.damaged(offset, "the file ends in the middle of a record"))
        }
    }

    /// Reads the record at `offset` into `buffer`, without the blocks of a large value, and checks
    /// it. A record that is much longer than the average takes a second read.
    #[inline]
    pub(crate) fn record(&self, offset: u64, buffer: &mut Vec<u8>) -> Result<Header, Error> {
        let first_read = self.first_read();
        memory::grow_to(buffer, first_read)?;
        let read = self.read_up_to(&mut buffer[..first_read], offset)?;
        let header = Header::read(&buffer[..read])
            .filter(|header| offset.saturating_add(header.size()) <= self.end())
            .ok_or_else(|| self.damaged(offset, "no record starts here"))?;
        let body = usize_of(header.body());
        if body > read {
            self.read_rest(offset, &header, read, buffer)?;
        }
        if record::is_sound(&buffer[..body], &self.position(offset)) {
            Ok(header)
        } else {
            Err(self.damaged(offset, "the checksum of a record does not match"))
        }
    }

    /// Reads the rest of a body of which `buffer` has the first `read` bytes.
    #[cold]
    fn read_rest(
        &self,
        offset: u64,
        header: &Header,
        read: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let body = usize_of(header.body());
        if body > LONG_BODY {
            self.check_long_body(offset, header)?;
        }
        memory::grow_to(buffer, body)?;
        self.read(&mut buffer[read..body], offset + read as u64)
    }

    /// Checks the body of a long record in constant memory. Until that is done its length may be
    /// damage, which must not decide how much memory is taken.
    pub(crate) fn check_long_body(&self, offset: u64, header: &Header) -> Result<(), Error> {
        let (body, mut piece, mut at) = (header.body(), Vec::new(), 0);
        memory::grow_to(&mut piece, LONG_BODY)?;
        let mut check: Option<BodyCheck> = None;
        while at < body {
            let piece = &mut piece[..usize_of(body - at).min(LONG_BODY)];
            self.read(piece, offset + at)?;
            match &mut check {
                Some(check) => check.update(piece),
                None => check = Some(BodyCheck::new(piece)),
            }
            at += piece.len() as u64;
        }
        if check.is_some_and(|check| check.is_sound(&self.position(offset))) {
            Ok(())
        } else {
            Err(self.damaged(offset, "the checksum of a record does not match"))
        }
    }

    /// Reads the block of a large value at `offset` into `buffer`, and checks it.
    pub(crate) fn block(
        &self,
        offset: u64,
        block: BlockSize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        memory::grow_to(buffer, block.stored)?;
        buffer.truncate(block.stored);
        self.read(buffer, offset)?;
        if record::is_sound_block(buffer, &self.position(offset)) {
            Ok(())
        } else {
            Err(self.damaged(offset, "the checksum of a block of a large value does not match"))
        }
    }

    /// Reads the blocks of the record at `offset`, if its value is large. Each block is checked and
    /// passed to `take` with the number of its bytes that are value.
    pub(crate) fn each_block(
        &self,
        offset: u64,
        header: &Header,
        mut take: impl FnMut(&mut [u8], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut at, mut buffer) = (offset + header.body(), Vec::new());
        for block in record::block_sizes(header) {
            self.block(at, block, &mut buffer)?;
            take(&mut buffer, block.content)?;
            at += block.stored as u64;
        }
        Ok(())
    }

    /// Returns the large value of the record at `offset`. Its memory grows with the blocks that
    /// were checked.
    pub(crate) fn large_value(&self, offset: u64, header: &Header) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.each_block(offset, header, |stored, content| {
            if value.len() + content > value.capacity() {
                let left = usize_of(header.value_len) - value.len();
                let more = left.min(value.len().max(FIRST_BLOCKS));
                memory::reserve(&mut value, more)?;
            }
            value.extend_from_slice(&stored[..content]);
            Ok(())
        })?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
