//! A maplet as bytes, and bytes as a maplet: the file of a filter, with values in its slots and no counters (docs/FORMAT.md).
//!
//! The degrees of trust are those of a filter's file: [`MapletView::open`] checks the header and the length, after which no query can leave the bytes;
//! [`verify`](Maplet::verify) checks the rest; [`Maplet::from_bytes`] does both.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::pairs::Pairs;
use super::{Maplet, MapletEntry, MapletView, entries};
use crate::body::Body;
use crate::error::{ImageError, require};
use crate::image::{self, Header, Kind};
use crate::store::Store;

impl Maplet {
    /// The maplet in `bytes`, which are copied and checked in full. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] for any bytes that are not a sound maplet.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let view = MapletView::open(bytes)?;
        view.verify()?;
        let (body, pairs) = (view.body.to_owned_body(false), view.pairs.clone());
        Ok(Self { body, pairs, body_checksum: None })
    }
}

impl<'a> MapletView<'a> {
    /// Opens the maplet in `bytes` where it lies. O(1): reads the header only; call [`verify`](Self::verify) on bytes you do not trust.
    ///
    /// # Errors
    /// [`ImageError`] where the header is not one of a maplet, or where the length does not fit it.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ImageError> {
        let header = Header::decode(bytes)?.of_kind(Kind::Maplet)?;
        let limit = header.profile.counter_limit;
        require("counters", header.counters, header.counters == 0)?;
        require("counter limit", limit, limit == 0)?;
        let grows = header.growth.is_some();
        require("keys", header.len, header.len == header.entries || grows)?;
        require("keys", header.len, header.len <= header.entries)?;
        let (table, _) = header.parts(bytes)?;
        let (body, pairs) = (header.body(table), Pairs::of(&header)?);
        Ok(Self { body, pairs, body_checksum: Some(header.body_checksum) })
    }
}

impl<S: Store> Maplet<S> {
    /// The maplet as one file image.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        image::collected(self.size_in_bytes(), |sink| self.write_to(sink))
    }

    /// Hands the bytes of [`to_bytes`](Self::to_bytes) to `sink`, part by part, without a copy of the buckets.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn write_to<E>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let header = self.pairs.header(&self.body, Kind::Maplet, xxh3_64(self.body.bytes()));
        sink(&header.encode())?;
        sink(self.body.bytes())
    }

    /// Checks everything that [`MapletView::open`] took on trust: the checksum of the body, that every slot could have been written by this crate, and
    /// that they are as many as the header says. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`] naming the first thing that is wrong.
    pub fn verify(&self) -> Result<(), ImageError> {
        let stored = self.body_checksum;
        if stored.is_some_and(|stored| stored != xxh3_64(self.body.bytes())) {
            return Err(ImageError::Checksum { part: "body" });
        }
        self.pairs.verify_slots(&self.body, |_| true)
    }
}

impl Pairs {
    /// Checks that every slot could have been written by this crate and `is_sound`, and that they are as many as the header says.
    pub(super) fn verify_slots<B: AsRef<[u8]>>(
        &self,
        body: &Body<B>,
        mut is_sound: impl FnMut(MapletEntry) -> bool,
    ) -> Result<(), ImageError> {
        let layout = body.layout();
        let mut found = 0;
        for entry in entries(body) {
            let in_width = entry.value >> layout.value_bits() == 0;
            let is_written = layout.is_fingerprint(entry.fingerprint) && in_width;
            require("bucket", entry.bucket, is_written && is_sound(entry))?;
            found += 1;
        }
        require("padding", 0, body.is_padded_with_zeros())?;
        require("mass", 0, body.weighs_what_it_says())?;
        require("entries", self.entries, self.entries == found)
    }
}
