//! A counting filter as bytes, and bytes as a counting filter: the file of a maplet whose values are counts, and the counters of a filter's file behind it (docs/FORMAT.md).
//!
//! The degrees of trust are those of a filter's file: [`CountingView::open`] checks the header and the length, after which no query can leave the bytes;
//! [`verify`](CountingFilter::verify) checks the rest; [`CountingFilter::from_bytes`] does both.

use alloc::vec::Vec;

use super::super::MapletEntry;
use super::super::pairs::Pairs;
use super::tally::{Tally, is_full};
use super::{CountingFilter, CountingView};
use crate::body::Body;
use crate::counters::{self, Counters, Identity, ReadCounters, StoredCounters};
use crate::error::{ImageError, require};
use crate::growth::Grown;
use crate::image::{self, Header, Kind};
use crate::store::Store;
use crate::table::Table;

impl CountingFilter {
    /// The counting filter in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound counting filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = CountingView::open(bytes)?;
        view.verify()?;
        let Tally { pairs, counters, len } = &view.tally;
        let counters = Counters::from_iter(counters.iter());
        let tally = Tally { pairs: pairs.clone(), counters, len: *len };
        Ok(Self { body: view.body.to_owned_body(false), tally, body_checksum: None })
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
        let (pairs, counters) = (Pairs::of(&header)?, StoredCounters::new(records));
        let tally = Tally { pairs, counters, len: header.len };
        let body_checksum = Some(header.body_checksum);
        Ok(Self { body: header.body(table), tally, body_checksum })
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
            len: self.len(),
            counters: self.distinct_counters(),
            ..self.tally.pairs.header(&self.body, Kind::Counting, self.checksum())
        };
        sink(&header.encode())?;
        sink(self.body.bytes())?;
        self.tally.counters.iter().try_for_each(|counter| sink(&counters::encode(counter)))
    }

    /// Checks everything that [`CountingView::open`] took on trust: the checksum of the body, that every slot and counter could have been written by this
    /// crate, and that they add up to what the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        if self.body_checksum.is_some_and(|stored| stored != self.checksum()) {
            return Err(ImageError::Checksum { part: "body" });
        }
        let mut in_slots = 0;
        self.tally.pairs.verify_slots(&self.body, |entry| {
            in_slots += u128::from(entry.value);
            entry.value > 0 && self.body.built().is_none_or(|table| is_alone(table, &entry))
        })?;
        let counters = &self.tally.counters;
        let counted = match &self.body {
            Body::Built(table) => counters.verify(|name| names_a_full_slot(table, name))?,
            Body::Grown(grown) => counters.verify(|name| names_a_full_entry(grown, name))?,
        };
        let (len, sum) = (u128::from(self.len()), in_slots + counted);
        // Growth may leave counts behind that are nobody's.
        let may_be_less = self.body.grown().is_some();
        require("keys", self.len(), len == sum || may_be_less && len < sum)
    }

    fn checksum(&self) -> u64 {
        image::body_checksum(self.body.bytes(), &self.tally.counters)
    }
}

/// Whether no other slot counts the same keys.
fn is_alone<B: AsRef<[u8]>>(table: &Table<B>, entry: &MapletEntry) -> bool {
    let place = table.geometry().place_of(entry.bucket, entry.fingerprint);
    table.candidates(place.buckets(), [entry.fingerprint; 2]).count_left() == 1
}

/// Whether this is the name of an entry whose slot says the largest count.
fn names_a_full_slot<B: AsRef<[u8]>>(table: &Table<B>, name: Identity) -> bool {
    let layout = table.layout();
    let (bucket, fingerprint) = (name >> layout.fingerprint_bits(), layout.fingerprint_of(name));
    bucket < table.geometry().buckets() && fingerprint != 0 && {
        let place = table.geometry().place_of(bucket, fingerprint);
        let mut slots = table.candidates(place.buckets(), [fingerprint; 2]);
        place.identity(layout.fingerprint_bits()) == name && slots.any(|slot| is_full(layout, slot))
    }
}

/// The same in a table that grows.
fn names_a_full_entry<B: AsRef<[u8]>>(grown: &Grown<B>, name: Identity) -> bool {
    let (addresses, layout) = (grown.addresses(), grown.table().layout());
    let site = addresses.named(name).and_then(|prefix| addresses.site(prefix));
    site.is_some_and(|site| {
        let length = site.prefix.length;
        let mut entries = grown.table().matches(&site);
        entries.any(|entry| entry.prefix.length == length && is_full(layout, entry.slot))
    })
}
