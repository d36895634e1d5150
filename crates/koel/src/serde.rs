//! `Serialize` and `Deserialize`: a filter of any kind and a maplet are their file image, one
//! string of bytes, which is checked in full when it is read.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use crate::error::ImageError;
use crate::file::FileImage;
use crate::image::Header;
use crate::mem::buffer::Buffer;
use crate::{CountingFilter, CuckooFilter, ExpiringFilter, Maplet};

/// Implements both traits for a type that has a file image.
macro_rules! as_file_image {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let bytes = self.try_to_bytes().map_err(ser::Error::custom)?;
                serializer.serialize_bytes(&bytes)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Image(PhantomData))
            }
        }
    };
}

as_file_image!(CuckooFilter);
as_file_image!(Maplet);
as_file_image!(CountingFilter);
as_file_image!(ExpiringFilter);

/// Reads the file image of a `T`.
struct Image<T>(PhantomData<T>);

impl<'de, T: FileImage> Visitor<'de> for Image<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a Koel {}", T::KIND.name())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        read(bytes).map_err(E::custom)
    }

    /// Formats without byte strings, such as JSON, give a sequence of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<T, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.try_reserve(1).map_err(|_| de::Error::custom(ImageError::NoMemory))?;
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

fn read<T: FileImage>(bytes: &[u8]) -> Result<T, ImageError> {
    let header = Header::decode_as(T::KIND, bytes)?;
    let (table, trailer) = header.parts(bytes)?;
    let table = Buffer::copy_of(table, header.growable).ok_or(ImageError::NoMemory)?;
    T::of_parts(&header, table, trailer)
}
