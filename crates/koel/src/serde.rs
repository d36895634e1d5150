//! `Serialize` and `Deserialize`: a filter, a maplet or a counting filter is its file image, one
//! string of bytes, checked in full when read.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ImageError;
use crate::{CountingFilter, CuckooFilter, Maplet};

impl Serialize for CuckooFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for CuckooFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Image { kind: "filter", read: Self::from_bytes })
    }
}

impl Serialize for Maplet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for Maplet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Image { kind: "maplet", read: Self::from_bytes })
    }
}

impl Serialize for CountingFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for CountingFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Image { kind: "counting filter", read: Self::from_bytes })
    }
}

/// The bytes to come, and what is made of them.
struct Image<T> {
    /// What they are of.
    kind: &'static str,
    read: fn(&[u8]) -> Result<T, ImageError>,
}

impl<'de, T> Visitor<'de> for Image<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a Koel {}", self.kind)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.read)(bytes).map_err(E::custom)
    }

    /// Formats without byte strings, such as JSON, give a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<T, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
