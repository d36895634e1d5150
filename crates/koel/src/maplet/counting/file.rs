//! A counting filter as bytes, and bytes as a counting filter: the file of a maplet whose values are counts, and the counters of a filter's file behind it (docs/FORMAT.md).
//!
//! The degrees of trust are those of a filter's file: [`CountingView::open`] checks the header and the length, after which no query can leave the bytes;
//! [`verify`](CountingFilter::verify) checks the rest; [`CountingFilter::from_bytes`] does both.

use alloc::vec::Vec;

use super::{CountingFilter, CountingView, MapletView};
use crate::counters::{self, Counters, ReadCounters, StoredCounters};
use crate::error::{ImageError, require};
use crate::image::{self, Header, Kind};
use crate::store::Store;

impl CountingFilter {
    /// The counting filter in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound counting filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = CountingView::open(bytes)?;
        view.verify()?;
        let counters = Counters::from_iter(view.counters.iter());
        Ok(Self { maplet: view.maplet.to_owned_maplet(), counters, len: view.len })
    }
}

impl<'a> CountingView<'a> {
    /// Opens the counting filter in `bytes` where it lies. O(1): reads the header only; call [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one of a counting filter, or where the length does not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let header = Header::decode(bytes)?.of_kind(Kind::Counting)?;
        let limit = header.profile.counter_limit;
        require("counter limit", limit, limit == u64::MAX)?;
        let (table, records) = header.parts(bytes)?;
        Ok(Self {
            maplet: MapletView::over(&header, table)?,
            counters: StoredCounters::new(records),
            len: header.len,
        })
    }
}

impl<S: Store> CountingFilter<S> {
    /// The filter as one file image.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        image::collected(self.size_in_bytes(), |sink| self.write_to(sink))
    }

    /// Hands the bytes of [`to_bytes`](Self::to_bytes) to `sink`, part by part, without a copy of the buckets.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_to<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let header = Header {
            len: self.len,
            counters: self.counters.len(),
            ..self.maplet.header(Kind::Counting, self.checksum())
        };
        sink(&header.encode())?;
        sink(self.maplet.body.bytes())?;
        self.counters.iter().try_for_each(|counter| sink(&counters::encode(counter)))
    }

    /// Checks everything that [`CountingView::open`] took on trust: the checksum of the body, that every slot and counter could have been written by this
    /// crate, and that they add up to what the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        if self.maplet.body_checksum.is_some_and(|stored| stored != self.checksum()) {
            return Err(ImageError::Checksum { part: "body" });
        }
        let mut in_slots = 0;
        self.maplet.verify_slots(|entry| {
            in_slots += u128::from(entry.value);
            entry.value > 0 && self.is_alone(entry.bucket, entry.fingerprint)
        })?;
        let sum = in_slots + self.counters.verify(|identity| self.names_a_full_slot(identity))?;
        let grows = self.maplet.body.grown.is_some();
        let len = u128::from(self.len);
        // Growth may leave counts behind that are nobody's.
        require("keys", self.len, len == sum || grows && len <= sum)
    }

    fn checksum(&self) -> u64 {
        image::body_checksum(self.maplet.body.bytes(), &self.counters)
    }

    /// Whether no other slot counts the same keys, in a table that has not grown.
    fn is_alone(&self, bucket: u64, fingerprint: u64) -> bool {
        let body = &self.maplet.body;
        body.grown.is_some() || {
            let place = body.table.geometry().place_of(bucket, fingerprint);
            body.table.candidates(place.buckets(), [fingerprint; 2]).count_left() == 1
        }
    }

    /// Whether this is the name of an entry whose slot says the largest count.
    fn names_a_full_slot(&self, identity: u64) -> bool {
        let (body, layout, most) = (&self.maplet.body, self.layout(), self.most());
        let is_full = |slot: u64| layout.value_of(slot) == most;
        let Some(grown) = &body.grown else {
            let (bucket, fingerprint) =
                (identity >> layout.fingerprint_bits(), layout.fingerprint_of(identity));
            return bucket < body.buckets() && fingerprint != 0 && {
                let place = body.table.geometry().place_of(bucket, fingerprint);
                place.identity(layout.fingerprint_bits()) == identity
                    && body.table.candidates(place.buckets(), [fingerprint; 2]).any(is_full)
            };
        };
        let site = grown.addresses().named(identity).and_then(|it| grown.addresses().site(it));
        site.is_some_and(|site| {
            let length = site.prefix.length;
            let mut entries = grown.table().matches(&site);
            entries.any(|entry| entry.prefix.length == length && is_full(entry.slot))
        })
    }
}
