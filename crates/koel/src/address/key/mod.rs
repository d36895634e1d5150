//! The bytes of a key.
//!
//! A filter outlives the program that built it, so a key's bytes must not depend on the machine,
//! the compiler or the standard library's `Hash`. docs/FORMAT.md repeats the rules for other
//! languages:
//!
//! * The bytes of a byte string are its own, and those of text are its UTF-8 bytes.
//! * The bytes of an integer are little-endian and as many as its type has, so `1_u32` and `1_u64`
//!   are different keys.
//! * Only tuples add lengths. Nothing adds a terminator.
//!
//! A ready hash is a key without bytes: see [`KeyHash`]. `joined.rs` has keys of several parts,
//! `library.rs` other types of the standard library, and `paths.rs` paths and file names.

mod joined;
mod library;
#[cfg(feature = "std")]
mod paths;

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZero;

pub use joined::{HashedKey, KeyParts};

/// A value with a stable byte encoding, and therefore a stable hash; or a hash itself.
///
/// Implemented for:
///
/// * byte strings, text, characters, `bool`, integers and arrays of integers; `usize` and `isize`
///   have 64 bits on every machine;
/// * tuples of up to six keys, which are different keys if any of their elements differ;
/// * IP and socket addresses; with the feature `std`, paths and file names; with the feature
///   `uuid`, UUIDs;
/// * references to keys, and `Cow`, `Box`, `Rc` and `Arc` of keys;
/// * `Option`, `()` and the `NonZero` integers; slices of integers;
/// * [ready hashes](KeyHash), and values of any type with `Hash`, as a [`HashedKey`].
///
/// **The type of an integer is part of the key**, since its bytes are: `5_u32` and `5_u64` are
/// different keys, and the other one is silently absent. Only `usize` and `u64` are alike, and
/// `isize` and `i64`; negative numbers have the bytes of large ones. Where keys come from several
/// places, wrap the filter in functions that take one type.
///
/// Floating-point numbers are not keys, since equal ones can have different bytes: use `to_bits`.
/// docs/FORMAT.md specifies the bytes of each type.
///
/// Implement it for a type of your own by delegating to a key whose meaning never changes:
///
/// ```
/// use koel::{Key, KeyData};
///
/// struct Account { id: u64 }
///
/// impl Key for Account {
///     fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
///         self.id.with(read)
///     }
/// }
///
/// let mut filter = koel::CuckooFilter::with_capacity(100);
/// filter.insert(&Account { id: 7 })?;
/// assert!(filter.contains(&7_u64) && !filter.contains(&7_u32));
/// # Ok::<(), koel::FullError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    label = "has no stable bytes that a filter could hash",
    note = "use its bytes, its text, an integer or a tuple of these as the key, or implement \
            `koel::Key` for a type of your own by calling `with` of such a key",
    note = "floating-point numbers are not keys: use `to_bits`"
)]
pub trait Key {
    /// Calls `read` with the bytes or the hash of this key.
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R;
}

/// What a filter reads of a [`Key`].
#[derive(Clone, Copy, Debug)]
pub enum KeyData<'a> {
    /// Bytes, which the filter's hasher hashes.
    Bytes(&'a [u8]),
    /// The bytes of a long tuple or array, which the hasher hashes part by part.
    Parts(KeyParts<'a>),
    /// A ready hash.
    Hash(KeyHash),
}

/// A ready hash, which is a key.
///
/// The hash that [`KeyHasher::hash`](crate::KeyHasher::hash) returns for a key finds that key in
/// every filter with that hasher. Any other 64 bits that distinguish keys work too, because filters
/// mix them. A filter built with [`trust_hashes`](crate::Builder::trust_hashes) does not.
///
/// ```
/// use koel::{CuckooFilter, KeyHash};
///
/// let mut filter = CuckooFilter::with_capacity(1000);
/// let hashes: Vec<KeyHash> = (0..1000).map(KeyHash::new).collect();
/// filter.insert_many(&hashes)?;
/// assert!(filter.contains(&KeyHash::new(999)));
/// # Ok::<(), koel::FullError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct KeyHash(u64);

impl KeyHash {
    /// A hash made elsewhere.
    #[inline]
    #[must_use]
    pub const fn new(hash: u64) -> Self {
        Self(hash)
    }

    /// The 64 bits.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for KeyHash {
    #[inline]
    fn from(hash: u64) -> Self {
        Self(hash)
    }
}

impl From<KeyHash> for u64 {
    #[inline]
    fn from(hash: KeyHash) -> Self {
        hash.0
    }
}

impl Key for KeyHash {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Hash(*self))
    }
}

impl Key for [u8] {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self))
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self))
    }
}

/// No bytes.
impl Key for () {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(&[]))
    }
}

/// `None` is the key `()`, and `Some(key)` is the tuple `(key,)`.
impl<K: Key> Key for Option<K> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        match self {
            None => ().with(read),
            Some(key) => (key,).with(read),
        }
    }
}

impl Key for Vec<u8> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self))
    }
}

impl Key for str {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self.as_bytes()))
    }
}

impl Key for String {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self.as_bytes()))
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        (**self).with(read)
    }
}

macro_rules! integer_keys {
    ($($integer:ty)*) => {$(
        impl Key for $integer {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                read(KeyData::Bytes(&self.to_le_bytes()))
            }
        }

        /// The number.
        impl Key for NonZero<$integer> {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                self.get().with(read)
            }
        }
    )*};
}

integer_keys!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
