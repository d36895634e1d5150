//! How a table of fields becomes a header.
//!
//! [`header!`] takes a row for each field: its type, its bytes, its name in docs/FORMAT.md, and
//! what must hold of the header for the field to be sound. From the rows follow the type of the
//! header, where each field is, how a header is read, written and checked, and the errors. All
//! numbers are little-endian.

use super::format::Kind;
use crate::error::ImageError;
use crate::packing::Codec;

/// Defines the header with these fields, in the order of their bytes.
macro_rules! header {
    ($(
        $(#[$doc:meta])*
        $field:ident: $type:ty, $bytes:literal, $name:literal $(, $is_sound:expr)?;
    )*) => {
        /// The content of a header.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Header {
            $($(#[$doc])* pub(crate) $field: $type,)*
        }

        const _: () = assert!(HEADER_BYTES == 0 $(+ $bytes)*, "the fields fill the header");

        /// The bytes and the name of each field.
        #[cfg(test)]
        const FIELDS: &[(usize, &str)] = &[$(($bytes, $name)),*];

        impl Header {
            /// The bytes of the fields.
            fn write(&self) -> [u8; HEADER_BYTES] {
                let mut bytes = [0; HEADER_BYTES];
                let mut rest = &mut bytes[..];
                $(put(&mut rest, $bytes, self.$field);)*
                bytes
            }

            /// The fields in these bytes, each with a value of its type.
            fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, ImageError> {
                let mut rest = &bytes[..];
                Ok(Self { $($field: take(&mut rest, $bytes, $name)?),* })
            }

            /// Refuses the first field that is not sound. What must hold of a field may rely on the
            /// fields before it.
            fn check(&self) -> Result<(), ImageError> {
                $($(
                    let is_sound: fn(&Self) -> bool = $is_sound;
                    require($name, got(self.$field.number()), is_sound(self))?;
                )?)*
                Ok(())
            }
        }
    };
}
pub(super) use header;

/// What a field of the header can hold.
pub(super) trait Value: Copy {
    fn number(self) -> u128;
    /// The value with this number; `None` if there is none.
    fn of(number: u128) -> Option<Self>;
}

/// A field that has one value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Is<const N: u64>;

impl<const N: u64> Value for Is<N> {
    fn number(self) -> u128 {
        N.into()
    }

    fn of(number: u128) -> Option<Self> {
        (number == N.into()).then_some(Self)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn number(self) -> u128 {
                self.into()
            }

            fn of(number: u128) -> Option<Self> {
                number.try_into().ok()
            }
        })*
    };
}

numbers!(u16 u32 u64 u128);

/// Values in the order of their numbers.
macro_rules! choices {
    ($($type:ty: $($choice:expr),*;)*) => {
        $(impl Value for $type {
            fn number(self) -> u128 {
                self as u128
            }

            fn of(number: u128) -> Option<Self> {
                [$($choice),*].get(usize::try_from(number).ok()?).copied()
            }
        })*
    };
}

choices! {
    bool: false, true;
    Kind: Kind::Filter, Kind::Maplet, Kind::Counting, Kind::Expiring;
    Codec: Codec::Plain, Codec::SemiSorted;
}

impl Value for f64 {
    fn number(self) -> u128 {
        self.to_bits().into()
    }

    fn of(number: u128) -> Option<Self> {
        number.try_into().ok().map(Self::from_bits)
    }
}

/// Writes the next field, of so many bytes.
pub(super) fn put(rest: &mut &mut [u8], bytes: usize, value: impl Value) {
    let (field, behind) = core::mem::take(rest).split_at_mut(bytes);
    field.copy_from_slice(&value.number().to_le_bytes()[..bytes]);
    *rest = behind;
}

/// Reads the next field, of so many bytes.
pub(super) fn take<V: Value>(
    rest: &mut &[u8],
    bytes: usize,
    field: &'static str,
) -> Result<V, ImageError> {
    let (content, behind) = rest.split_at(bytes);
    *rest = behind;
    let number = content.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte));
    V::of(number).ok_or(ImageError::Field { field, got: got(number) })
}

/// What an error shows of a field: its value, or the high half of one that is longer.
pub(super) fn got(number: u128) -> u64 {
    number.try_into().or((number >> 64).try_into()).unwrap_or(u64::MAX)
}
