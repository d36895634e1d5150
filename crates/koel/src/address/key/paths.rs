//! Names of files as the system spells them.
//!
//! A name that is valid Unicode is its UTF-8 bytes on every platform. Any other name is its bytes
//! on Unix. On Windows, where such a name has an unpaired surrogate, it is what
//! [`OsStr::as_encoded_bytes`] gives, which another version of Rust may encode otherwise.
//!
//! Nothing is normalised: `a/b` and `a//b` are different keys, though they are equal paths.

extern crate std;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Key, KeyData};

impl Key for OsStr {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        read(KeyData::Bytes(self.as_encoded_bytes()))
    }
}

impl Key for OsString {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        self.as_os_str().with(read)
    }
}

impl Key for Path {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        self.as_os_str().with(read)
    }
}

impl Key for PathBuf {
    #[inline]
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        self.as_os_str().with(read)
    }
}
