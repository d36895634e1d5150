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
use core::convert::Infallible;
use core::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use super::{Buckets, Expiry, State};
use crate::error::{ImageError, MemoryError};
use crate::image::shape::{self, Profile, Shape};
use crate::image::{CORRECTION_BYTES, HEADER_BYTES, Header, Kind, RECORD_BYTES};
use crate::mem::buffer::Buffer;
use crate::packing::SLOTS;
use crate::state::counters::{ReadCounters, WriteCounters};
use crate::state::exact::{ReadExact, StoredExact};
use crate::state::record::encode;

/// Buckets and state.
pub(crate) struct Body<B, C: ReadCounters> {
    pub(crate) buckets: Buckets<B>,
    pub(crate) state: State<C>,
    /// The checksum that the bytes of a view store for their body.
    checksum: Option<u64>,
}

impl<'a, C: ReadCounters<Exact: From<StoredExact<'a>>>> Body<&'a [u8], C> {
    /// The body in these bytes, without a copy. `counters` reads the counters' records. O(1).
    ///
    /// # Errors
    /// [`ImageError`] if the header is not one of this kind, or if the length does not match it.
    pub(crate) fn open(
        bytes: &'a [u8],
        kind: Kind,
        counters: impl FnOnce(&'a [u8]) -> C,
    ) -> Result<Self, ImageError> {
        let header = Header::decode_as(kind, bytes)?;
        let (table, trailer) = header.parts(bytes)?;
        let [records, stash, corrections] = header.split_trailer(trailer);
        let exact = StoredExact::new(stash, corrections).into();
        Ok(Self::of(&header, table, counters(records), exact))
    }
}

/// A second view of the same bytes. O(1).
impl<C: ReadCounters<Exact: Clone> + Clone> Clone for Body<&[u8], C> {
    fn clone(&self) -> Self {
        Self { buckets: self.buckets.clone(), state: self.state.clone(), checksum: self.checksum }
    }
}

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    pub(crate) fn new(buckets: Buckets<B>, state: State<C>) -> Self {
        Self { buckets, state, checksum: None }
    }

    /// The body that a header describes, not verified.
    fn of(header: &Header, table: B, counters: C, exact: C::Exact) -> Self {
        let spares = if header.kind == Kind::Filter { header.entries - header.distinct } else { 0 };
        let state = State::new(header.kind, header.profile(), counters, exact);
        let expiry = header.clock().map(Expiry::uncounted);
        let state = State { len: header.len, entries: header.entries, spares, expiry, ..state };
        Self { buckets: Buckets::of(header, table), state, checksum: Some(header.body_checksum) }
    }

    /// A copy in its own memory.
    pub(crate) fn copy(&self) -> Result<Body<Buffer, C::Owned>, MemoryError> {
        let grows = self.state.kind == Kind::Filter && self.state.profile.growable;
        let no_memory = MemoryError { bytes: self.size_in_bytes() };
        let buckets = self.buckets.to_owned_buckets(grows).ok_or(no_memory)?;
        let body = Body::new(buckets, self.state.copy().ok_or(no_memory)?);
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
        if range.start < HEADER_BYTES {
            let header = self.header().encode();
            sink(&header[range.start..range.end.clamp(range.start, HEADER_BYTES)])?;
        }
        let behind = |end: usize| end.saturating_sub(HEADER_BYTES);
        self.each_piece(behind(range.start)..behind(range.end), sink)
    }

    /// Passes this range of the buckets and counters to `sink` as a file stores them.
    fn each_piece<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let buckets = self.buckets.bytes().len();
        let start = range.start.min(buckets);
        self.buckets.each_piece(start..range.end.clamp(start, buckets), &mut sink)?;
        let State { counters, exact, .. } = &self.state;
        let behind = |range: Range<usize>, part: u64, bytes_each: usize| {
            let bytes = usize::try_from(part).unwrap_or(usize::MAX).saturating_mul(bytes_each);
            range.start.saturating_sub(bytes)..range.end.saturating_sub(bytes)
        };
        let range = range.start.saturating_sub(buckets)..range.end.saturating_sub(buckets);
        each_record(range.clone(), counters.iter().map(encode), &mut sink)?;
        let range = behind(range, counters.len(), RECORD_BYTES);
        each_record(range.clone(), exact.stash().map(encode), &mut sink)?;
        let range = behind(range, exact.lens()[0], RECORD_BYTES);
        each_record(range, exact.corrections().map(u64::to_le_bytes), &mut sink)
    }

    /// The header. A view keeps its checksum: with a new one, damage would be sound from then on.
    fn header(&self) -> Header {
        let body_checksum = self.checksum.unwrap_or_else(|| self.computed_checksum());
        let state = &self.state;
        let distinct = if state.kind == Kind::Filter { state.distinct() } else { 0 };
        let (len, entries, counters) = (state.len, state.entries, state.counters.len());
        let [stashed, corrections] = state.exact.lens();
        let empty = self.empty_header();
        Header { len, entries, counters, distinct, stashed, corrections, body_checksum, ..empty }
    }

    /// Tells filters of different settings apart: a digest by the hash of the filter, which says
    /// nothing of its secret.
    pub(crate) fn settings(&self) -> u64 {
        self.state.profile.route.hasher().digest(&self.empty_header().settings())
    }

    /// The header of an empty filter with these settings.
    fn empty_header(&self) -> Header {
        let State { kind, profile, expiry, .. } = &self.state;
        let growing = self.buckets.growing();
        let growth = growing.map(|growing| (growing.geometry(), growing.match_weight()));
        let clock = expiry.as_ref().map(|expiry| &expiry.clock);
        Header::of(*kind, self.buckets.shape(), profile, growth, clock)
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

    /// Bytes of the file: header, buckets, counters, stash and corrections.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let [stashed, corrections] = self.state.exact.lens();
        let records = self.state.counters.len().saturating_add(stashed);
        let trailer = records.saturating_mul(RECORD_BYTES as u64);
        let trailer = trailer.saturating_add(corrections.saturating_mul(CORRECTION_BYTES as u64));
        let trailer = usize::try_from(trailer).unwrap_or(usize::MAX);
        (HEADER_BYTES + self.buckets.bytes().len()).saturating_add(trailer)
    }

    /// Slots of all buckets.
    pub(crate) fn slots(&self) -> u64 {
        self.buckets.count() * SLOTS as u64
    }

    /// The number of entries that match an absent key on average. O(1).
    pub(crate) fn false_candidates(&self) -> f64 {
        match self.buckets.growing() {
            None => self.state.entries as f64 / self.possible_entries(),
            Some(growing) => growing.matches_of_an_absent_key(),
        }
    }

    /// The probability that an entry matches an absent key. Second copies do not count.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        (self.state.distinct() as f64 / self.possible_entries()).min(1.0)
    }

    /// An estimate of the number of distinct keys, none above the number of copies.
    pub(crate) fn distinct_estimate(&self) -> f64 {
        let estimate = shape::distinct_keys(self.state.distinct(), self.possible_entries());
        let estimate = estimate + self.state.exact.lens()[0] as f64;
        estimate.min(self.state.len as f64)
    }

    /// The number of entries that keys can have, all equally likely. In a growing table, the number
    /// that would give the same false-positive rate.
    pub(crate) fn possible_entries(&self) -> f64 {
        match self.buckets.growing() {
            None => {
                let bits = self.buckets.layout().fraction_bits();
                shape::possible_entries(bits, self.buckets.count())
            }
            Some(growing) => self.state.entries.max(1) as f64 / growing.matches_of_an_absent_key(),
        }
    }
}

impl<C: WriteCounters> Body<Buffer, C> {
    /// Bytes that it has allocated beside the buckets: counters, exact answers, and the memory of
    /// searches.
    pub(crate) fn allocated_beside(&self) -> usize {
        let State { counters, exact, expiry, .. } = &self.state;
        let stamps = expiry.as_ref().map_or(0, Expiry::allocated_bytes);
        let answers = counters.allocated_bytes() + exact.allocated_bytes();
        answers + stamps + self.state.search_bytes()
    }

    /// The body that a header describes, verified. `trailer` is what a file has behind the buckets.
    #[cfg(any(feature = "std", feature = "serde"))]
    pub(crate) fn of_parts(
        header: &Header,
        table: Buffer,
        trailer: &[u8],
    ) -> Result<Self, ImageError> {
        let [records, stash, corrections] = header.split_trailer(trailer);
        let exact = StoredExact::new(stash, corrections).into();
        let view = Body::of(header, table.as_ref(), C::stored(records), exact);
        view.verify()?;
        let state = view.state.copy().ok_or(ImageError::NoMemory)?;
        let body = Self::new(Buckets::of(header, table).restored(), state);
        body.with_counted_stamps().ok_or(ImageError::NoMemory)
    }

    /// An empty body; `None` if there is no memory for it.
    pub(crate) fn empty(kind: Kind, shape: Shape, profile: Profile) -> Option<Self> {
        // Maplets that grow have the growing table from the start.
        let grows = kind == Kind::Filter && profile.growable;
        let state = State::new(kind, profile, C::default(), C::Exact::default());
        Some(Self::new(Buckets::empty(shape, grows)?, state))
    }

    /// Removes everything. The size stays.
    pub(crate) fn clear(&mut self) {
        self.buckets.clear();
        self.state.clear();
    }
}

/// Equal file images, but for how many buckets are still to be widened: built alike, and changed
/// alike since.
impl<C: ReadCounters + PartialEq> PartialEq for Body<Buffer, C> {
    fn eq(&self, other: &Self) -> bool {
        self.buckets == other.buckets && self.state == other.state
    }
}

/// Passes this range of the bytes of records to `sink`.
fn each_record<const N: usize, E>(
    range: Range<usize>,
    records: impl Iterator<Item = [u8; N]>,
    mut sink: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let numbered = (0..range.end.div_ceil(N)).zip(records);
    for (number, bytes) in numbered.skip(range.start / N) {
        let within = |end: usize| end.saturating_sub(number * N).min(N);
        sink(&bytes[within(range.start)..within(range.end)])?;
    }
    Ok(())
}
