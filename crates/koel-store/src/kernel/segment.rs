//! A segment: one file of records, appended to until it is full, and never written to again.
//!
//! ```text
//! 0        8         12   16     24       32         40
//! +--------+---------+----+------+--------+----------+---------+---------+
//! | magic  | version | 0  | salt | number | checksum | record  | record  | ..
//! +--------+---------+----+------+--------+----------+---------+---------+
//! ```
//!
//! Numbers are never used twice, so neither are names. Where the records end is not in the file: the manifest knows it of every segment but the one being written.

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use super::access::{self, read_up_to, u32_at, u64_at, write_all};
use super::files::{File, Folder};
use super::record::{self, Head, Place};
use crate::Error;

/// How many bytes a segment may have, unless one record alone has more; the greatest is more than any record has.
pub(crate) const SIZES: RangeInclusive<u64> = 4 << 10..=16 << 30;

/// Where the first record starts.
pub(crate) const FIRST: u64 = 40;

const MAGIC: [u8; 8] = *b"koellog\n";
const VERSION: u32 = 1;
/// Less is not cheaper.
const LEAST_READ: u64 = 512;
/// A record with more, large values apart, has a very long key.
const MOST_READ: u64 = 96 << 10;
const SUFFIX: &str = ".log";

/// An open segment, and what is known of its records.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) name: String,
    file: Arc<dyn File>,
    salt: u64,
    /// Bytes of the file that are header and records.
    end: AtomicU64,
    /// Bytes of records that nothing asks for any more; tombstones are counted apart.
    dead: AtomicU64,
    /// Bytes of tombstones.
    tombstones: AtomicU64,
    /// The sequence up to which no record is left that was dead by then.
    cleaned: AtomicU64,
    /// The greatest sequence of its records.
    last: AtomicU64,
    /// Bytes of its records, but for marks.
    content: AtomicU64,
    /// How many of those can be had in one read, and their bytes.
    short: [AtomicU64; 2],
    /// A sync has failed. Held while one is under way.
    lost: Mutex<bool>,
    /// Where a compaction found damage, and what.
    damage: OnceLock<(u64, &'static str)>,
}

/// The name of the file of segment `number`.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number:016x}{SUFFIX}")
}

/// The number in the name of a segment.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(SUFFIX)?, 16).ok()?;
    (name_of(number) == name).then_some(number)
}

fn header(salt: u64, number: u64) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&salt.to_le_bytes());
    bytes[24..32].copy_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64(&bytes[..32]);
    bytes[32..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

impl Segment {
    /// Creates the file of a segment, which [`begin`](Self::begin) makes one without records.
    pub(crate) fn create(folder: &dyn Folder, salt: u64, number: u64) -> Result<Self, Error> {
        let name = name_of(number);
        let file = folder.create(&name).map_err(Error::io("create", &name))?;
        Ok(Self::with_file(file, name, salt, number))
    }

    /// Writes the header. It is durable after [`sync`](Self::sync), and the file after a sync of the folder.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.write(&header(self.salt, self.number), 0)?;
        self.set_end(FIRST);
        Ok(())
    }

    /// Opens a segment and checks its header.
    pub(crate) fn open(folder: &dyn Folder, salt: u64, number: u64) -> Result<Self, Error> {
        let missing = || Error::damaged(&name_of(number), 0, "the file is missing");
        let segment = Self::open_unseen(folder, salt, number)?.ok_or_else(missing)?;
        let mut bytes = [0; 40];
        let read = segment.read_up_to(&mut bytes, 0)?;
        if bytes == header(salt, number) {
            return Ok(segment);
        }
        let is_sound = read == bytes.len()
            && bytes[..8] == MAGIC
            && u64_at(&bytes, 32) == xxh3_64(&bytes[..32]);
        let version = u32_at(&bytes, 8);
        if is_sound && version > VERSION {
            Err(Error::Newer { file: segment.name, version })
        } else if is_sound && u64_at(&bytes, 16) != salt {
            Err(Error::OtherStore { file: segment.name })
        } else {
            Err(Error::damaged(&segment.name, 0, "it does not begin as this segment does"))
        }
    }

    /// Opens a segment whatever its header says; `None` where there is no such file. Its records say whether they belong to it.
    pub(crate) fn open_unseen(
        folder: &dyn Folder,
        salt: u64,
        number: u64,
    ) -> Result<Option<Self>, Error> {
        let name = name_of(number);
        match folder.open(&name) {
            Ok(file) => {
                let segment = Self::with_file(file, name, salt, number);
                segment.set_end(segment.file_len()?);
                Ok(Some(segment))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", &name)(error)),
        }
    }

    /// The salt in the header of segment `number`, if that is sound.
    pub(crate) fn salt_in(folder: &dyn Folder, number: u64) -> Result<Option<u64>, Error> {
        let Some(segment) = Self::open_unseen(folder, 0, number)? else { return Ok(None) };
        let mut bytes = [0; 40];
        segment.read_up_to(&mut bytes, 0)?;
        let salt = u64_at(&bytes, 16);
        Ok((bytes == header(salt, number)).then_some(salt))
    }

    fn with_file(file: Arc<dyn File>, name: String, salt: u64, number: u64) -> Self {
        let [end, dead, tombstones, cleaned, last, content] = [0; 6].map(AtomicU64::new);
        let (lost, damage) = (Mutex::default(), OnceLock::new());
        Self {
            number,
            name,
            file,
            salt,
            end,
            dead,
            tombstones,
            cleaned,
            last,
            content,
            short: Default::default(),
            lost,
            damage,
        }
    }

    /// What the checksum of bytes at `offset` is over.
    #[inline]
    pub(crate) fn place(&self, offset: u64) -> Place {
        Place { salt: self.salt, segment: self.number, offset }
    }

    /// Where the records end.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// Bytes of records that compaction would drop now, tombstones not among them.
    pub(crate) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn add_dead(&self, bytes: u64) {
        self.dead.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.tombstones.load(Ordering::Relaxed)
    }

    pub(crate) fn add_tombstones(&self, bytes: u64) {
        self.tombstones.fetch_add(bytes, Ordering::Relaxed);
    }

    /// No record of this segment is left that was dead when the log had this sequence.
    pub(crate) fn cleaned(&self) -> u64 {
        self.cleaned.load(Ordering::Relaxed)
    }

    pub(crate) fn set_cleaned(&self, sequence: u64) {
        self.cleaned.store(sequence, Ordering::Relaxed);
    }

    /// The greatest sequence of its records.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// It has a record with this sequence. Only who writes the segment, or opens it, calls this and [`add_record`](Self::add_record).
    pub(crate) fn saw(&self, sequence: u64) {
        self.last.store(self.last().max(sequence), Ordering::Relaxed);
    }

    /// It has one more record, of so many bytes, that is no mark.
    pub(crate) fn add_record(&self, bytes: u64) {
        access::add(&self.content, bytes);
        if bytes <= MOST_READ {
            let [count, all] = &self.short;
            access::add(count, 1);
            access::add(all, bytes);
        }
    }

    /// Bytes of marks: whatever is no other record.
    pub(crate) fn marks(&self) -> u64 {
        self.end().saturating_sub(FIRST + self.content.load(Ordering::Relaxed))
    }

    /// The damage that keeps it from being compacted, if any was found since it was opened.
    pub(crate) fn damage(&self) -> Option<Error> {
        self.damage.get().map(|&(offset, what)| self.damaged(offset, what))
    }

    pub(crate) fn remember_damage(&self, offset: u64, what: &'static str) {
        self.damage.get_or_init(|| (offset, what));
    }

    /// Bytes to read of a record whose length is not known: those of an average record and a quarter more, so that one read is enough for most. The large ones do not count:
    /// their blocks are read by themselves.
    #[inline]
    fn guess(&self) -> usize {
        let [count, all] = self.short.each_ref().map(|number| number.load(Ordering::Relaxed));
        let average = all / count.max(1);
        let guess = (average + average / 4).next_multiple_of(LEAST_READ);
        record::usize_of(guess.clamp(LEAST_READ, MOST_READ))
    }

    pub(crate) fn file_len(&self) -> Result<u64, Error> {
        self.file.len().map_err(Error::io("measure", &self.name))
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all(&*self.file, bytes, offset).map_err(Error::io("write", &self.name))
    }

    /// Makes everything durable that was written before. One at a time, and never again after a failure: of threads that sync at the same time the system may tell only one that bytes were lost.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if *lost { Err(io::Error::other("an earlier sync failed")) } else { Ok(()) };
        let synced = before.and_then(|()| self.file.sync());
        *lost = synced.is_err();
        synced.map_err(Error::io("sync", &self.name))
    }

    pub(crate) fn cut(&self, len: u64) -> Result<(), Error> {
        self.file.set_len(len).map_err(Error::io("cut", &self.name))?;
        self.set_end(len);
        Ok(())
    }

    /// Reads until `into` is full or the file ends.
    #[inline]
    pub(crate) fn read_up_to(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        read_up_to(&*self.file, into, offset).map_err(Error::io("read", &self.name))
    }

    /// Fills `into`, or says that the file is damaged where it ends too early.
    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<(), Error> {
        if self.read_up_to(into, offset)? == into.len() {
            Ok(())
        } else {
            Err(self.damaged(offset, "the file ends in the middle of a record"))
        }
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> Error {
        Error::damaged(&self.name, offset, what)
    }

    /// Reads the record at `offset` into `buffer`, the blocks of a large value excepted, and checks it. A record that is much longer than the average takes a second read.
    #[inline]
    pub(crate) fn record(&self, offset: u64, buffer: &mut Vec<u8>) -> Result<Head, Error> {
        let guess = self.guess();
        if buffer.len() < guess {
            buffer.resize(guess, 0);
        }
        let read = self.read_up_to(&mut buffer[..guess], offset)?;
        let head = Head::read(&buffer[..read])
            .filter(|head| offset.saturating_add(head.size()) <= self.end())
            .ok_or_else(|| self.damaged(offset, "no record begins here"))?;
        let body = record::usize_of(head.body());
        if body > read {
            buffer.resize(body.max(buffer.len()), 0);
            self.read(&mut buffer[read..body], offset + read as u64)?;
        }
        if record::is_sound(&buffer[..body], &self.place(offset)) {
            Ok(head)
        } else {
            Err(self.damaged(offset, "the checksum of a record does not match"))
        }
    }

    /// Reads a block of a large value at `offset` into `buffer`, and checks it.
    pub(crate) fn block(
        &self,
        offset: u64,
        block: record::BlockSize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        buffer.resize(block.stored, 0);
        self.read(buffer, offset)?;
        if record::is_sound_block(buffer, &self.place(offset)) {
            Ok(())
        } else {
            Err(self.damaged(offset, "the checksum of a block of a large value does not match"))
        }
    }

    /// Reads the value of the record at `offset`, if it is large: each block of it is checked and handed to `take`, with how many of its bytes are of the value.
    pub(crate) fn each_block(
        &self,
        offset: u64,
        head: &Head,
        mut take: impl FnMut(&mut [u8], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut at, mut buffer) = (offset + head.body(), Vec::new());
        for block in record::block_sizes(head) {
            self.block(at, block, &mut buffer)?;
            take(&mut buffer, block.content)?;
            at += block.stored as u64;
        }
        Ok(())
    }

    /// The value of the record at `offset`, if it is large.
    pub(crate) fn large_value(&self, offset: u64, head: &Head) -> Result<Vec<u8>, Error> {
        let mut value = Vec::with_capacity(record::usize_of(head.value_len));
        self.each_block(offset, head, |stored, content| {
            value.extend_from_slice(&stored[..content]);
            Ok(())
        })?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// A file whose first sync fails; the system tells only once.
    #[derive(Debug, Default)]
    struct LosesBytes {
        told: AtomicBool,
    }

    impl File for LosesBytes {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            let told = self.told.swap(true, Ordering::Relaxed);
            if told { Ok(()) } else { Err(io::Error::other("lost")) }
        }
    }

    /// The average was that of all records, so that among large values 96 KiB were read for any.
    #[test]
    fn a_read_is_as_long_as_most_records_that_have_no_blocks() {
        let segment = Segment::with_file(Arc::new(LosesBytes::default()), name_of(1), 1, 1);
        assert_eq!(segment.guess(), 512);
        (0..10).for_each(|_| segment.add_record(4 << 20));
        assert_eq!(segment.guess(), 512);
        (0..10).for_each(|_| segment.add_record(1000));
        assert_eq!(segment.guess(), 1536);
        (0..1000).for_each(|_| segment.add_record(MOST_READ));
        assert_eq!(segment.guess() as u64, MOST_READ);
    }

    #[test]
    fn a_segment_that_lost_bytes_is_never_durable_again() {
        let file = Arc::new(LosesBytes::default());
        let segment = Segment::with_file(file.clone(), name_of(1), 1, 1);
        for _ in 0..3 {
            assert!(segment.sync().is_err());
        }
        assert!(file.sync().is_ok());
    }
}
