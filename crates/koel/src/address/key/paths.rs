//! Paths and file names, as the system spells them.
//!
//! * The bytes of a name in valid Unicode are its UTF-8 bytes, on every platform.
//! * On Unix any other name has bytes of its own.
//! * On Windows any other name has an unpaired surrogate. Its bytes are those of
//!   [`OsStr::as_encoded_bytes`], which another version of Rust may encode differently.
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
