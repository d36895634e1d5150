//! Saves the pieces of a filter as its file, in constant memory.
//!
//! ```text
//!     | header | segment 0 | segment 1 | ...            | counters of segment 0, 1, ... | stash |
//! ```
//!
//! A piece goes to its place as it comes, in any order. Counters of copies go behind the segments
//! in the order of arrival; if that is not the order of segments, they are sorted at the end. The
//! checksum is over all segments in their order, so the file is then read once.
//!
//! Memory: one piece, 32 bytes for each segment, and 16 for each key in a stash: there is hardly
//! one.

extern crate std;

use alloc::vec::Vec;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::disk::{self, FileError};
use crate::filter::Arrivals;
use crate::image::{HEADER_BYTES, Header, SECTIONS};
use crate::side::{Pair, encode};
use crate::{PieceError, PiecePlan};

/// Bytes that are copied or read at once.
const BUFFER: usize = if cfg!(test) { 48 } else { 1 << 18 };

/// Files. Need the feature `std`.
impl PiecePlan {
    /// Saves the filter of these pieces to a file, as [`CuckooFilter::save`] does, with the memory
    /// of one piece. Takes the pieces and `keys`, and refuses them, as [`join`](Self::join) does,
    /// but checks only their checksums. Returns the number of keys that went in.
    ///
    /// `pieces` may fail, such as when they are read from files. The file at `path` is complete,
    /// or as it was before.
    ///
    /// ```
    /// use koel::{CuckooFilter, FileError};
    ///
    /// let plan = CuckooFilter::builder(1000, 0.001).pieces()?;
    /// let pieces = plan.build_all(&["ada", "grace"])?;
    /// # let path = std::env::temp_dir().join(format!("pieces-{}.koel", std::process::id()));
    /// plan.save(&path, pieces.iter().map(Ok::<_, FileError>), Some(2))?;
    /// assert!(CuckooFilter::load(&path)?.contains("grace"));
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `pieces`; [`FileError::Piece`] or [`FileError::Io`]; or
    /// [`FileError::Unsynced`], and then the new file is there. What is not a regular file, such as
    /// a pipe, is refused.
    ///
    /// [`CuckooFilter::save`]: crate::CuckooFilter::save
    pub fn save<P: AsRef<[u8]>, E: From<FileError>>(
        &self,
        path: impl AsRef<Path>,
        pieces: impl IntoIterator<Item = Result<P, E>>,
        keys: Option<u64>,
    ) -> Result<u64, E> {
        disk::save(path.as_ref(), |file| self.save_to(file, pieces, keys))
    }

    /// [`save`](Self::save) to an open file, which it replaces. The file must be open for reading
    /// too. After an error it is not a filter.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_to<P: AsRef<[u8]>, E: From<FileError>>(
        &self,
        file: &mut File,
        pieces: impl IntoIterator<Item = Result<P, E>>,
        keys: Option<u64>,
    ) -> Result<u64, E> {
        let mut filter = FilterFile::begin(self, file)?;
        for piece in pieces {
            filter.add(piece?.as_ref())?;
        }
        Ok(filter.finish(keys)?)
    }
}

/// A file that gets its pieces.
struct FilterFile<'p> {
    plan: &'p PiecePlan,
    file: &'p mut File,
    arrivals: Arrivals<'p>,
    header: Header,
    /// Bytes of the header and the table: where the counters begin.
    table_end: u64,
    /// The counters of each segment in the file.
    counters: Vec<Records>,
    /// The stashes of all segments so far.
    stash: Vec<(Pair, u64)>,
}

/// Some records behind the table.
#[derive(Clone, Copy, Default)]
struct Records {
    first: u64,
    count: u64,
}

impl<'p> FilterFile<'p> {
    fn begin(plan: &'p PiecePlan, file: &'p mut File) -> Result<Self, FileError> {
        if !file.metadata()?.is_file() {
            let message = "pieces are saved to a regular file only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message).into());
        }
        let header = plan.header();
        let (table, _) = header.lengths().ok_or(PieceError::NoMemory)?;
        let table_end = (HEADER_BYTES + table) as u64;
        let segments = usize::try_from(plan.segments()).map_err(|_| PieceError::NoMemory)?;
        let mut counters = Vec::new();
        counters.try_reserve_exact(segments).map_err(|_| PieceError::NoMemory)?;
        counters.resize(segments, Records::default());
        let arrivals = Arrivals::new(plan)?;
        // Empty segments and the padding are zeros.
        file.set_len(0)?;
        file.set_len(table_end)?;
        Ok(Self { plan, file, arrivals, header, table_end, counters, stash: Vec::new() })
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), FileError> {
        let Some((segment, view)) = self.arrivals.admit(piece)? else { return Ok(()) };
        let bytes = self.plan.segment_bytes(&view);
        let start = HEADER_BYTES as u64 + segment as u64 * bytes.len() as u64;
        self.file.seek(SeekFrom::Start(start))?;
        self.file.write_all(bytes)?;
        let first = self.header.counters;
        self.plan.add(&view, &mut self.header)?;
        self.counters[segment] = Records { first, count: self.header.counters - first };
        self.file.seek(SeekFrom::Start(self.record_at(first)))?;
        let mut records = io::BufWriter::with_capacity(BUFFER, &mut *self.file);
        for counter in self.plan.counters(segment, &view) {
            records.write_all(&encode(counter)[..SECTIONS[0]])?;
        }
        records.flush()?;
        drop(records);
        let stash = self.plan.stash(segment, &view);
        for stashed in stash {
            self.stash.try_reserve(1).map_err(|_| PieceError::NoMemory)?;
            self.stash.push(stashed);
        }
        Ok(())
    }

    /// Sorts the counters, and writes the header. Returns the number of keys.
    fn finish(mut self, expected: Option<u64>) -> Result<u64, FileError> {
        let keys = self.arrivals.finish(expected)?;
        self.sort_counters()?;
        self.write_stash()?;
        let end = self.file.stream_position()?;
        let mut checksum = Xxh3::new();
        self.read_each(HEADER_BYTES as u64..end, |_, bytes| {
            checksum.update(bytes);
            Ok(())
        })?;
        self.header.body_checksum = checksum.digest();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.header.encode())?;
        Ok(keys)
    }

    /// Writes the stash behind the counters.
    fn write_stash(&mut self) -> io::Result<()> {
        self.stash.sort_unstable();
        self.file.seek(SeekFrom::Start(self.record_at(self.header.counters)))?;
        self.stash.iter().try_for_each(|&pair| self.file.write_all(&encode(pair)[..SECTIONS[1]]))
    }

    /// Where a counter is in the file.
    fn record_at(&self, number: u64) -> u64 {
        self.table_end + number * SECTIONS[0] as u64
    }

    /// Puts the counters in the order of segments: a sorted copy goes behind them, then to their
    /// place.
    fn sort_counters(&mut self) -> io::Result<()> {
        let runs: Vec<Records> =
            self.counters.iter().filter(|run| run.count > 0).copied().collect();
        if runs.is_sorted_by_key(|run| run.first) {
            return Ok(());
        }
        let (start, end) = (self.table_end, self.record_at(self.header.counters));
        let mut to = end;
        for run in runs {
            self.copy(self.record_at(run.first)..self.record_at(run.first + run.count), to)?;
            to += run.count * SECTIONS[0] as u64;
        }
        self.copy(end..to, start)?;
        self.file.set_len(end)
    }

    /// Copies bytes of the file to another place, which does not overlap with them.
    fn copy(&mut self, from: core::ops::Range<u64>, to: u64) -> io::Result<()> {
        let start = from.start;
        self.read_each(from, |file, bytes| {
            let at = file.stream_position()?;
            file.seek(SeekFrom::Start(to + (at - bytes.len() as u64 - start)))?;
            file.write_all(bytes)?;
            file.seek(SeekFrom::Start(at)).map(|_| ())
        })
    }

    /// Reads bytes of the file in order, a buffer at a time.
    fn read_each(
        &mut self,
        range: core::ops::Range<u64>,
        mut take: impl FnMut(&mut File, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(BUFFER).map_err(|_| io::ErrorKind::OutOfMemory)?;
        buffer.resize(BUFFER, 0);
        self.file.seek(SeekFrom::Start(range.start))?;
        let mut rest = range.end - range.start;
        while rest > 0 {
            let len = usize::try_from(rest).unwrap_or(BUFFER).min(BUFFER);
            self.file.read_exact(&mut buffer[..len])?;
            take(self.file, &buffer[..len])?;
            rest -= len as u64;
        }
        Ok(())
    }
}
