//! Buckets and state: what a filter, a maplet and a counting filter are made of, and what a file of
//! each holds.
//!
//! The buckets in memory are the buckets in the file, so writing is a copy and opening a view costs
//! one look at the header. There are three degrees of trust: [`open`](Body::open) checks the header
//! and the length, after which no query can read outside the bytes whatever they are;
//! [`verify`](Body::verify) checks the checksum and every bucket and counter (verify.rs); an owned
//! body is made of bytes that passed both.

use xxhash_rust::xxh3::Xxh3;

use super::{Buckets, State};
use crate::error::ImageError;
use crate::image::shape::{self, Profile, Shape};
use crate::image::{self, Growth, HEADER_BYTES, Header, Kind};
use crate::mem::buffer::Buffer;
use crate::packing::SLOTS;
use crate::state::counters::{self, ReadCounters, WriteCounters};

/// Buckets and state.
pub(crate) struct Body<B, C> {
    pub(crate) buckets: Buckets<B>,
    pub(crate) state: State<C>,
    /// What the bytes of a view say of their body.
    checksum: Option<u64>,
}

impl<'a, C: ReadCounters> Body<&'a [u8], C> {
    /// The body in these bytes, where they lie. `counters` reads the counters' records. O(1).
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one of this kind, or where the length does not fit.
    pub(crate) fn open(
        bytes: &'a [u8],
        kind: Kind,
        counters: impl FnOnce(&'a [u8]) -> C,
    ) -> Result<Self, ImageError> {
        let header = Header::decode_as(kind, bytes)?;
        let (table, records) = header.parts(bytes)?;
        Ok(Self::of(&header, table, counters(records)))
    }
}

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    pub(crate) fn new(buckets: Buckets<B>, state: State<C>) -> Self {
        Self { buckets, state, checksum: None }
    }

    /// The body that a header describes, which nobody has verified.
    fn of(header: &Header, table: B, counters: C) -> Self {
        let spares = if header.kind == Kind::Filter { header.entries - header.distinct } else { 0 };
        let state = State::new(header.kind, header.profile, counters);
        let state = State { len: header.len, entries: header.entries, spares, ..state };
        Self { buckets: Buckets::of(header, table), state, checksum: Some(header.body_checksum) }
    }

    /// A copy in memory of its own. `None` where the system has no memory for it.
    pub(crate) fn to_owned_body(&self) -> Option<Body<Buffer, C::Owned>> {
        let grows = self.state.kind == Kind::Filter && self.state.profile.growable;
        let buckets = self.buckets.to_owned_buckets(grows)?;
        Some(Body::new(buckets, self.state.to_owned_state()))
    }

    /// A copy in which all buckets are wide; `None` where they are already.
    pub(super) fn widened(&self) -> Option<Body<Buffer, C::Owned>> {
        let buckets = self.buckets.widened()?;
        Some(Body::new(buckets, self.state.to_owned_state()))
    }

    /// Hands the bytes of the file to `sink`, part by part. The buckets are copied only where some
    /// are still to be widened.
    pub(crate) fn write_to<E>(
        &self,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(whole) = self.widened() {
            return whole.write_to(sink);
        }
        sink(&self.header().encode())?;
        sink(self.buckets.bytes())?;
        self.state.counters.iter().try_for_each(|counter| sink(&counters::encode(counter)))
    }

    fn header(&self) -> Header {
        let (state, kind) = (&self.state, self.state.kind);
        Header {
            kind,
            shape: self.buckets.shape(),
            growth: self.buckets.growing().map(Growth::of),
            profile: state.profile,
            len: state.len,
            entries: state.entries,
            distinct: if kind == Kind::Filter { state.distinct() } else { 0 },
            counters: state.counters.len(),
            body_checksum: self.computed_checksum(),
        }
    }

    /// XXH3-64 of buckets and counters as stored.
    fn computed_checksum(&self) -> u64 {
        let mut checksum = Xxh3::new();
        checksum.update(self.buckets.bytes());
        self.state.counters.iter().for_each(|counter| checksum.update(&counters::encode(counter)));
        checksum.digest()
    }

    /// Whether the body is what its checksum says, where it has one.
    pub(super) fn check_checksum(&self) -> Result<(), ImageError> {
        if self.checksum.is_some_and(|stored| stored != self.computed_checksum()) {
            return Err(ImageError::Checksum { part: "body" });
        }
        Ok(())
    }

    /// Whether these are bytes that nobody has verified.
    pub(crate) fn is_unverified(&self) -> bool {
        self.checksum.is_some()
    }

    /// Bytes of the file: header, buckets and counters.
    pub(crate) fn size_in_bytes(&self) -> usize {
        let counters = usize::try_from(self.state.counters.len()).unwrap_or(usize::MAX);
        let counters = counters.saturating_mul(image::RECORD_BYTES);
        (HEADER_BYTES + self.buckets.bytes().len()).saturating_add(counters)
    }

    /// Slots of all buckets.
    pub(crate) fn slots(&self) -> u64 {
        self.buckets.count() * SLOTS as u64
    }

    /// The share of slots in use, 0 to 1.
    pub(crate) fn load_factor(&self) -> f64 {
        self.state.entries as f64 / self.slots() as f64
    }

    /// How many entries match an absent key on average, where all are different.
    pub(crate) fn false_candidates(&self) -> f64 {
        match self.buckets.growing() {
            None => self.state.entries as f64 / self.possible_entries(),
            Some(growing) => growing.matches_of_an_absent_key(),
        }
    }

    /// The number of entries that keys can have, each as likely as any other. In a table that has
    /// grown, the number that would give the same false-positive rate.
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
    /// The body that a header describes, checked in full. `records` are the counters as stored.
    #[cfg(any(feature = "std", feature = "serde"))]
    pub(crate) fn of_parts(
        header: &Header,
        table: Buffer,
        records: &[u8],
    ) -> Result<Self, ImageError> {
        let view = Body::of(header, table.as_ref(), C::stored(records));
        view.verify()?;
        let state = view.state.to_owned_state();
        Ok(Self::new(Buckets::of(header, table), state))
    }

    /// An empty body; `None` where its bytes cannot be addressed or had.
    pub(crate) fn empty(kind: Kind, shape: Shape, profile: Profile) -> Option<Self> {
        // A maplet is built in the table in which it grows.
        let grow = kind == Kind::Filter && profile.growable;
        let state = State::new(kind, profile, C::default());
        Some(Self::new(Buckets::empty(shape, grow)?, state))
    }

    /// Removes everything. The size stays.
    pub(crate) fn clear(&mut self) {
        self.buckets.clear();
        self.state.clear();
    }
}

impl<C: WriteCounters> Clone for Body<Buffer, C> {
    fn clone(&self) -> Self {
        Self::new(self.buckets.clone(), self.state.clone())
    }
}

/// Equal bytes: built alike, and changed alike since.
impl<C: PartialEq> PartialEq for Body<Buffer, C> {
    fn eq(&self, other: &Self) -> bool {
        self.buckets == other.buckets && self.state == other.state
    }
}
