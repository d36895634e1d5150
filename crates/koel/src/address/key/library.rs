//! Types of the standard library that are keys, or that hold one.
//!
//! `f32` and `f64` are not keys: 0.0 equals -0.0 and has other bytes, and a NaN does not equal
//! itself. Use `to_bits`.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::{Key, KeyData};

/// Implements [`Key`] by an array of bytes, `|key| array`, for each type.
macro_rules! keys_by_bytes {
    ($($(#[$attribute:meta])* $type:ty: |$key:ident| $bytes:expr;)*) => {$(
        $(#[$attribute])*
        impl Key for $type {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                let $key = self;
                read(KeyData::Bytes(&$bytes))
            }
        }
    )*};
}

keys_by_bytes! {
    /// One byte, 0 or 1.
    bool: |key| [u8::from(*key)];
    /// As `u64`, on every machine.
    usize: |key| (*key as u64).to_le_bytes();
    /// As `i64`, on every machine.
    isize: |key| (*key as i64).to_le_bytes();
    /// Four octets.
    Ipv4Addr: |key| key.octets();
    /// Sixteen octets.
    Ipv6Addr: |key| key.octets();
    /// The octets, then the port in two little-endian bytes.
    SocketAddrV4: |key| {
        let ([a, b, c, d], [low, high]) = (key.ip().octets(), key.port().to_le_bytes());
        [a, b, c, d, low, high]
    };
    /// The octets, then the port in two little-endian bytes. Flow and scope are ignored.
    SocketAddrV6: |key| {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&key.ip().octets());
        bytes[16..].copy_from_slice(&key.port().to_le_bytes());
        bytes
    };
}

/// Its UTF-8 bytes, so `'a'` is the key `"a"`.
impl Key for char {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self.encode_utf8(&mut [0; 4]).as_bytes()))
    }
}

/// The key of the version that it has.
impl Key for IpAddr {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        match self {
            Self::V4(address) => address.with(read),
            Self::V6(address) => address.with(read),
        }
    }
}

/// The key of the version that it has.
impl Key for SocketAddr {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        match self {
            Self::V4(address) => address.with(read),
            Self::V6(address) => address.with(read),
        }
    }
}

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        (**self).with(read)
    }
}

impl<K: Key + ?Sized> Key for Box<K> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        (**self).with(read)
    }
}

impl<K: Key + ?Sized> Key for Rc<K> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        (**self).with(read)
    }
}

#[cfg(target_has_atomic = "ptr")]
impl<K: Key + ?Sized> Key for Arc<K> {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        (**self).with(read)
    }
}

/// Sixteen bytes, in the order in which a UUID is written.
#[cfg(feature = "uuid")]
impl Key for uuid::Uuid {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self.as_bytes()))
    }
}
