//! Which bytes a key is.
//!
//! A filter outlives the program that built it, so a key's bytes may not depend on the machine, the compiler or the standard
//! library's `Hash`. This trait is the whole rule, and docs/FORMAT.md repeats it for other languages: byte strings are themselves,
//! text is its UTF-8 bytes, an integer is its little-endian bytes at its own width (so `1_u32` and `1_u64` are different keys), and
//! nothing adds a length or a terminator. `usize` is left out because its width is the machine's.

use alloc::string::String;
use alloc::vec::Vec;

/// A value with a stable byte encoding, and so a stable hash.
///
/// Implemented for byte strings, text, fixed-width integers and references to them. Implement it for a type of your own by handing
/// on bytes that will never change their meaning:
///
/// ```
/// struct Account { id: u64 }
///
/// impl koel::Key for Account {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         self.id.with_bytes(read)
///     }
/// }
///
/// let mut filter = koel::CuckooFilter::with_capacity(100);
/// filter.insert(&Account { id: 7 })?;
/// assert!(filter.contains(&7_u64));
/// # Ok::<(), koel::Full>(())
/// ```
pub trait Key {
    /// Calls `read` with the bytes of this key.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;
}

impl Key for [u8] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Key for Vec<u8> {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Key for str {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

impl Key for String {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(read)
    }
}

macro_rules! integer_keys {
    ($($integer:ty)*) => {$(
        impl Key for $integer {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                read(&self.to_le_bytes())
            }
        }
    )*};
}

integer_keys!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
