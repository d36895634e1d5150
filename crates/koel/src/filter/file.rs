//! A filter as bytes, and bytes as a filter.
//!
//! The buckets in memory are the buckets in the file, so writing is a copy and opening a view costs one look at the header.
//! Three degrees of trust: [`FilterView::open`] checks the header and the length, after which no query can read outside the
//! bytes whatever they are; [`verify`](CuckooFilter::verify) checks the checksum and every bucket and counter; [`CuckooFilter::from_bytes`] does both, since an
//! owned filter is going to be changed.

use alloc::vec::Vec;

use super::built;
use super::tally::Tally;
use crate::CuckooFilter;
use crate::body::Body;
use crate::counters::{self, Identity, ReadCounters, StoredCounters};
use crate::error::{ImageError, require};
use crate::filter::FilterView;
use crate::growth::Grown;
use crate::image::{self, Growth, Header, Kind};
use crate::placement::Search;
use crate::store::Store;
use crate::table::Table;

impl CuckooFilter {
    /// The filter in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound filter.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = FilterView::open(bytes)?;
        view.verify()?;
        let body = view.body.to_owned_body(view.is_growable());
        Ok(Self { body, tally: view.tally.to_owned_tally(), body_checksum: None })
    }
}

impl<'a> FilterView<'a> {
    /// Opens the filter in `bytes` where it lies. O(1): reads the header only; call [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one, or where the length does not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let header = Header::decode(bytes)?.of_kind(Kind::Filter)?;
        let (table, records) = header.parts(bytes)?;
        let tally = Tally {
            counters: StoredCounters::new(records),
            profile: header.profile,
            len: header.len,
            entries: header.entries,
            spares: header.entries - header.distinct,
            search: Search::default(),
        };
        let body_checksum = Some(header.body_checksum);
        Ok(Self { body: header.body(table), tally, body_checksum })
    }
}

impl<S: Store> CuckooFilter<S> {
    /// The filter as one file image (docs/FORMAT.md).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        image::collected(self.size_in_bytes(), |sink| self.write_to(sink))
    }

    /// Hands the bytes of [`to_bytes`](Self::to_bytes) to `sink`, part by part, without a copy of the buckets, unless growth has just begun and is in the midst of widening them.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_to<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if let Some(whole) = self.widened() {
            return whole.write_to(sink);
        }
        let header = Header {
            kind: Kind::Filter,
            shape: self.body.shape(),
            growth: self.body.grown().map(Growth::of),
            profile: self.tally.profile,
            len: self.tally.len,
            entries: self.tally.entries,
            distinct: self.tally.distinct(),
            counters: self.tally.counters.len(),
            body_checksum: self.checksum(),
        };
        sink(&header.encode())?;
        sink(self.body.bytes())?;
        self.tally.counters.iter().try_for_each(|counter| sink(&counters::encode(counter)))
    }

    /// A copy in which all buckets are wide, where growth is in the midst of widening them: that is what is written, and checked.
    fn widened(&self) -> Option<CuckooFilter> {
        let tally = || self.tally.to_owned_tally();
        self.body.widened().map(|body| CuckooFilter { body, tally: tally(), body_checksum: None })
    }

    /// Whether the filter is a view, whose body may be anything.
    pub(super) fn is_unverified(&self) -> bool {
        self.body_checksum.is_some()
    }

    /// XXH3-64 of buckets and counters as stored.
    fn checksum(&self) -> u64 {
        image::body_checksum(self.body.bytes(), &self.tally.counters)
    }

    /// Checks everything that [`FilterView::open`] took on trust: the checksum of the body, that every bucket and counter could have been
    /// written by this crate, and that they add up to what the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        if let Some(whole) = self.widened() {
            return whole.verify();
        }
        if self.body_checksum.is_some_and(|stored| stored != self.checksum()) {
            return Err(ImageError::Checksum { part: "body" });
        }
        self.verify_buckets()?;
        let (len, entries) = (u128::from(self.tally.len), u128::from(self.tally.entries));
        let told = self.tally.distinct();
        let keys_fit = match &self.body {
            Body::Built(table) => {
                let distinct = table.distinct_entries().count() as u64;
                require("distinct entries", told, told == distinct)?;
                len == entries + self.tally.counters.verify(|name| names_an_entry(table, name))?
            }
            Body::Grown(grown) => {
                require("mass", 0, self.body.weighs_what_it_says())?;
                len <= entries
                    + self.tally.counters.verify(|name| names_a_grown_entry(grown, name))?
            }
        };
        require("keys", self.tally.len, keys_fit)
    }

    /// Whether every bucket could have been written by this crate, and all of them hold as many entries as they should.
    fn verify_buckets(&self) -> Result<(), ImageError> {
        let layout = self.layout();
        let mut entries = 0;
        for bucket in 0..self.buckets() {
            let word = self.body.word(bucket);
            let slots = layout.decode(word);
            let sound = layout.is_canonical(word)
                && slots.entries().all(|slot| layout.is_fingerprint(slot));
            require("bucket", bucket, sound)?;
            entries += slots.entries().count() as u64;
        }
        require("padding", 0, self.body.is_padded_with_zeros())?;
        require("entries", self.tally.entries, self.tally.entries == entries)
    }
}

/// Whether an entry of this name is in the buckets it belongs to.
fn names_an_entry<B: AsRef<[u8]>>(table: &Table<B>, name: Identity) -> bool {
    let layout = table.layout();
    let (bucket, fingerprint) = (name >> layout.fingerprint_bits(), layout.fingerprint_of(name));
    bucket < table.geometry().buckets() && fingerprint != 0 && {
        let place = table.geometry().place_of(bucket, fingerprint);
        built::identity(table, &place) == name && table.copies(&place, fingerprint) > 0
    }
}

/// Whether an entry of this name is in the buckets it belongs to.
fn names_a_grown_entry<B: AsRef<[u8]>>(grown: &Grown<B>, name: Identity) -> bool {
    let Some(prefix) = grown.addresses().named(name) else { return false };
    let Some(site) = grown.addresses().site(prefix) else { return false };
    grown.table().matches(&site).any(|entry| entry.prefix.length == prefix.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_an_entry_that_is_there_and_of_a_bucket_that_is() {
        let mut filter = CuckooFilter::builder(100, 0.01).build().unwrap();
        for key in 0..100_u64 {
            filter.insert(&key).unwrap();
        }
        let Body::Built(table) = &filter.body else { panic!("it has not grown") };
        let (bits, buckets) = (table.layout().fingerprint_bits(), table.geometry().buckets());
        let named = |bucket: u64| {
            let names = (0..1_u64 << bits).map(move |fingerprint| bucket << bits | fingerprint);
            names.filter(|&name| names_an_entry(table, name)).count() as u64
        };
        let distinct = table.distinct_entries().count() as u64;
        assert_eq!((0..buckets).map(named).sum::<u64>(), distinct);
        assert_eq!([buckets, buckets + 1, u64::MAX >> bits].map(named), [0; 3]);
    }
}
