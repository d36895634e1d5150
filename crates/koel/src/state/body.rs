//! Buckets and state: the parts of a filter, a maplet and a counting filter, and of their files.
//!
//! The buckets in memory are the buckets in the file. So writing is a copy, and opening a view
//! reads the header alone. There are three degrees of trust:
//!
//! * [`open`](Body::open) checks the header and the length. Whatever the other bytes are, no lookup
//!   can then read outside them.
//! * [`verify`](Body::verify) checks the checksum and every bucket and counter (verify.rs).
//! * An owned body is made from verified bytes.

use alloc::vec::Vec;
use core::array;
use core::convert::Infallible;
use core::mem;
use core::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use super::stamps::Sweeps;
use super::{Expiry, State};
use crate::error::{ImageError, MemoryError};
use crate::image::shape::{self, Profile, Shape};
use crate::image::{HEADER_BYTES, Header, Kind, SECTIONS};
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, SLOTS};
use crate::side::{Side, encode};
use crate::table::Table;

/// Buckets and state.
pub(crate) struct Body<B> {
    pub(crate) table: Table<B>,
    pub(crate) state: State<B>,
    /// The checksum that the bytes of a view store for their body.
    checksum: Option<u64>,
}

impl<'a> Body<&'a [u8]> {
    /// The body in these bytes, without a copy. O(1).
    ///
    /// # Errors
    /// [`ImageError`] if the header is not one of this kind, or if the length does not match it.
    pub(crate) fn open(bytes: &'a [u8], kind: Kind) -> Result<Self, ImageError> {
        let header = Header::decode_as(kind, bytes)?;
        let (table, trailer) = header.parts(bytes)?;
        let [lists @ .., sweeps] = header.split_trailer(trailer);
        Ok(Self::of(&header, table, lists, Sweeps::Stored(sweeps)))
    }
}

impl<B: AsRef<[u8]>> Body<B> {
    /// The body that a header describes, not verified.
    fn of(header: &Header, table: B, lists: [B; 3], sweeps: Sweeps<B>) -> Self {
        let spares = if header.kind == Kind::Filter { header.entries - header.distinct } else { 0 };
        let mut state = State::new(header.kind, header.profile());
        (state.len, state.entries, state.spares) = (header.len, header.entries, spares);
        state.side = Side::stored(lists);
        let expiry = |clock| Expiry::uncounted(clock, sweeps);
        state.expiry = header.clock().map(expiry);
        Self { table: header.table(table), state, checksum: Some(header.body_checksum) }
    }
}

/// A second view of the same bytes. O(1).
impl Clone for Body<&[u8]> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), state: self.state.clone(), checksum: self.checksum }
    }
}

impl<B: AsRef<[u8]>> Body<B> {
    pub(crate) fn new(table: Table<B>, state: State<B>) -> Self {
        Self { table, state, checksum: None }
    }

    /// A copy in its own memory.
    pub(crate) fn copy(&self) -> Result<Body<Buffer>, MemoryError> {
        self.copy_in(Vec::new())
    }

    /// A copy with the buckets in these words, or elsewhere if they are too few.
    pub(crate) fn copy_in(&self, memory: Vec<u64>) -> Result<Body<Buffer>, MemoryError> {
        let grows = self.state.kind() == Kind::Filter && self.state.profile.growable;
        let no_memory = MemoryError { bytes: self.size_in_bytes() };
        let table = self.table.copy_in(memory, grows).ok_or(no_memory)?;
        let body = Body::new(table, self.state.copy().ok_or(no_memory)?);
        body.with_counted_stamps().ok_or(no_memory)
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, MemoryError> {
        let (mut all, bytes) = (Vec::new(), self.size_in_bytes());
        all.try_reserve_exact(bytes).map_err(|_| MemoryError { bytes })?;
        let Ok(()) = self.write_range(0..bytes, |piece| {
            all.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
        Ok(all)
    }

    /// Passes this range of the bytes of the file to `sink`, piece by piece. The header has a
    /// checksum of all bytes behind it, so a range that begins there costs O(bytes).
    pub(crate) fn write_range<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if range.is_empty() {
            return Ok(());
        }
        if range.start < HEADER_BYTES {
            let header = self.header().encode();
            sink(&header[range.start..range.end.min(HEADER_BYTES)])?;
        }
        self.each_piece(behind(range, HEADER_BYTES), sink)
    }

    /// Passes this range of the buckets and counters to `sink` as a file stores them.
    fn each_piece<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let buckets = self.table.bytes().len();
        let start = range.start.min(buckets);
        self.table.each_piece(start..range.end.clamp(start, buckets), &mut sink)?;
        let mut rest = behind(range, buckets);
        let Side { counters, stash, corrections } = &self.state.side;
        let sweeps = self.state.time().into_iter().flat_map(|expiry| expiry.sweeps.iter());
        let [a, b, c, d] = self.section_bytes();
        each_record(&mut rest, a, SECTIONS[0], counters.iter().map(encode), &mut sink)?;
        each_record(&mut rest, b, SECTIONS[1], stash.iter().map(encode), &mut sink)?;
        each_record(&mut rest, c, SECTIONS[2], corrections.iter().map(encode), &mut sink)?;
        each_record(&mut rest, d, SECTIONS[3], sweeps.map(u16::to_le_bytes), &mut sink)
    }

    /// The records of each section.
    fn section_lens(&self) -> [u64; SECTIONS.len()] {
        let side = &self.state.side;
        let sweeps = self.state.time().map_or(0, |expiry| expiry.sweeps.len() as u64);
        [side.counters.len(), side.stash.len(), side.corrections.len(), sweeps]
    }

    /// The bytes of each section; more than any memory has if they cannot be counted.
    fn section_bytes(&self) -> [usize; SECTIONS.len()] {
        let lens = self.section_lens();
        array::from_fn(|i| {
            usize::try_from(lens[i]).unwrap_or(usize::MAX).saturating_mul(SECTIONS[i])
        })
    }

    /// The header. A view keeps its checksum: with a new one, damage would be sound from then on.
    fn header(&self) -> Header {
        let body_checksum = self.checksum.unwrap_or_else(|| self.computed_checksum());
        let state = &self.state;
        let distinct = if state.kind() == Kind::Filter { state.distinct() } else { 0 };
        let (len, entries) = (state.len, state.entries);
        let [counters, stashed, corrections, sweeps] = self.section_lens();
        Header {
            len,
            entries,
            distinct,
            counters,
            stashed,
            corrections,
            sweeps,
            body_checksum,
            ..self.empty_header()
        }
    }

    /// Tells filters of different settings apart: a digest by the hash of the filter, which says
    /// nothing of its secret. How far a filter has grown is no setting: one that may grow has the
    /// digest of one that begins to.
    pub(crate) fn settings(&self) -> u64 {
        let State { kind, profile, .. } = &self.state;
        let layout = self.layout_to_grow_in().unwrap_or(self.layout());
        let shape = Shape::of(self.table.base(), layout);
        let first_bits = self.table.base().fraction_bits();
        let header = Header { first_bits, ..Header::of(*kind, shape, profile, None, None) };
        profile.route.hasher().digest(&header.settings())
    }

    /// The header of an empty filter with these settings.
    fn empty_header(&self) -> Header {
        let State { kind, profile, .. } = &self.state;
        let growth =
            self.table.grows().then(|| (self.table.addresses(), self.table.match_weight()));
        let clock = self.state.time().map(|expiry| &expiry.clock);
        Header::of(*kind, self.shape(), profile, growth, clock)
    }

    /// XXH3-64 of buckets, counters and exact answers as stored.
    fn computed_checksum(&self) -> u64 {
        let mut checksum = Xxh3::new();
        let Ok(()) = self.each_piece(0..usize::MAX, |piece| {
            checksum.update(piece);
            Ok::<(), Infallible>(())
        });
        checksum.digest()
    }

    /// Compares the body with its checksum, if it has one.
    pub(crate) fn check_checksum(&self) -> Result<(), ImageError> {
        if self.checksum.is_some_and(|stored| stored != self.computed_checksum()) {
            return Err(ImageError::Checksum { part: "body" });
        }
        Ok(())
    }

    /// Whether these bytes may never have been verified.
    pub(crate) fn is_unverified(&self) -> bool {
        self.checksum.is_some()
    }

    /// Bytes of the file: header, buckets, and the sections behind them.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let sections = self.section_bytes().into_iter();
        sections.fold(HEADER_BYTES + self.table.bytes().len(), usize::saturating_add)
    }

    /// The packing of the buckets.
    #[inline]
    pub(crate) fn layout(&self) -> Layout {
        self.table.layout()
    }

    /// The shape that the table was built with, in its present layout.
    pub(crate) fn shape(&self) -> Shape {
        Shape::of(self.table.base(), self.layout())
    }

    /// Slots of all buckets.
    pub(crate) fn slots(&self) -> u64 {
        self.table.buckets() * SLOTS as u64
    }

    /// The number of entries that match an absent key on average. O(1).
    pub(crate) fn false_candidates(&self) -> f64 {
        if self.table.grows() {
            self.table.matches_of_an_absent_key()
        } else {
            self.state.entries as f64 / self.possible_entries()
        }
    }

    /// The probability that an entry matches an absent key. Second copies do not count.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        (self.state.distinct() as f64 / self.possible_entries()).min(1.0)
    }

    /// An estimate of the number of distinct keys, none above the number of copies.
    pub(crate) fn distinct_estimate(&self) -> f64 {
        let estimate = shape::distinct_keys(self.state.distinct(), self.possible_entries());
        let estimate = estimate + self.state.side.stash.len() as f64;
        estimate.min(self.state.len as f64)
    }

    /// See [`LinearHashing::possible_entries`].
    ///
    /// [`LinearHashing::possible_entries`]: crate::table::LinearHashing::possible_entries
    pub(crate) fn possible_entries(&self) -> f64 {
        self.table.addresses().possible_entries(self.state.entries, self.table.match_weight())
    }
}

impl Body<Buffer> {
    /// Bytes that it has allocated beside the buckets: counters, exact answers, and the memory of
    /// searches.
    pub(crate) fn allocated_beside(&self) -> usize {
        let stamps = self.state.time().map_or(0, Expiry::allocated_bytes);
        self.state.side.allocated_bytes() + stamps + self.state.search_bytes()
    }

    /// The body in these bytes, copied and verified.
    ///
    /// # Errors
    /// [`ImageError`] if the bytes are not a sound image of this kind, or if there is no memory.
    pub(crate) fn from_bytes(bytes: &[u8], kind: Kind) -> Result<Self, ImageError> {
        let header = Header::decode_as(kind, bytes)?;
        let (table, trailer) = header.parts(bytes)?;
        let grows = kind == Kind::Filter && header.growable;
        let table = Buffer::copy_of(table, grows).ok_or(ImageError::NoMemory)?;
        Self::of_parts(&header, table, trailer)
    }

    /// The body that a header describes, verified. `trailer` is what a file has behind the buckets.
    ///
    /// It is verified as a copy, not as a view: a program that opens no views needs no code that
    /// verifies them.
    pub(crate) fn of_parts(
        header: &Header,
        table: Buffer,
        trailer: &[u8],
    ) -> Result<Self, ImageError> {
        let [lists @ .., sweeps] = header.split_trailer(trailer);
        let copies = || {
            let [counters, stash, corrections] = lists.map(|list| Buffer::copy_of(list, false));
            Some(([counters?, stash?, corrections?], Sweeps::Stored(sweeps).copy()?))
        };
        let (lists, sweeps) = copies().ok_or(ImageError::NoMemory)?;
        let stored = Self::of(header, table, lists, sweeps);
        stored.verify()?;
        let state = stored.state.copy().ok_or(ImageError::NoMemory)?;
        let body = Self::new(stored.table.restored(), state);
        body.with_counted_stamps().ok_or(ImageError::NoMemory)
    }

    /// An empty body; `None` if there is no memory for it.
    pub(crate) fn empty(kind: Kind, shape: Shape, profile: Profile) -> Option<Self> {
        // Maplets that grow have the growing table from the start.
        let grows = kind == Kind::Filter && profile.growable;
        let table = Table::empty(shape.geometry(), shape.layout, grows)?;
        Some(Self::new(table, State::new(kind, profile)))
    }

    /// Removes everything. The size stays.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.state.clear();
    }

    /// Removes everything but the corrections.
    pub(crate) fn clear_keys(&mut self) {
        let corrections = mem::take(&mut self.state.side.corrections);
        self.clear();
        self.state.side.corrections = corrections;
    }
}

/// Equal file images, but for how many buckets are still to be widened: built alike, and changed
/// alike since.
impl PartialEq for Body<Buffer> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table && self.state == other.state
    }
}

/// What is left of a range behind so many bytes.
fn behind(range: Range<usize>, bytes: usize) -> Range<usize> {
    range.start.saturating_sub(bytes)..range.end.saturating_sub(bytes)
}

/// Passes this range of the bytes of records to `sink`, each of which has `width` bytes. The range
/// is then what is left behind all `bytes` of them.
fn each_record<const N: usize, E>(
    range: &mut Range<usize>,
    bytes: usize,
    width: usize,
    records: impl Iterator<Item = [u8; N]>,
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let numbered = (0..range.end.div_ceil(width)).zip(records);
    for (number, record) in numbered.skip(range.start / width) {
        let within = |end: usize| end.saturating_sub(number * width).min(width);
        sink(&record[within(range.start)..within(range.end)])?;
    }
    *range = behind(range.clone(), bytes);
    Ok(())
}
