//! `Serialize` and `Deserialize`: a filter is its file image, one string of bytes, checked in full when read.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::CuckooFilter;

impl Serialize for CuckooFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for CuckooFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Image)
    }
}

struct Image;

impl<'de> Visitor<'de> for Image {
    type Value = CuckooFilter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a Koel filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<CuckooFilter, E> {
        CuckooFilter::from_bytes(bytes).map_err(E::custom)
    }

    /// Formats without byte strings, such as JSON, give a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<CuckooFilter, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}
