//! Pointers and lengths of C as slices of Rust: the only place where one is made of the other.
//!
//! What each function needs of its caller is the promise at the top of koel.h: a pointer is null,
//! or so many elements follow it, which nobody changes during the call. A null pointer with length
//! 0 is an empty slice; with another length it is an error. Nothing keeps a slice after the call.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::slice;

use crate::Filter;
use crate::status::{Failure, Status};

/// A key in an array of keys: bytes that the caller owns.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Key {
    /// Where it starts. May be NULL if it has no bytes.
    pub data: *const c_void,
    /// Its bytes.
    pub len: usize,
}

/// Bytes that a function made. koel_free_bytes() frees them.
#[derive(Debug)]
#[repr(C)]
pub struct Bytes {
    /// The first of them.
    pub data: *mut u8,
    /// How many there are.
    pub len: usize,
}

/// An array of keys.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a>(&'a [Key]);

impl<'a> Keys<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Each of them, or an error for one that is null and has bytes.
    pub(crate) fn iter(self) -> impl Iterator<Item = Result<&'a [u8], Failure>> {
        // SAFETY: `keys` was promised it of each.
        self.0.iter().map(|key| unsafe { bytes(key.data, key.len) })
    }
}

/// The slice of `len` elements at `start`; `name` is for the error.
///
/// # Safety
/// `start` is null, or aligned and followed by so many elements that nobody changes.
#[inline]
unsafe fn items<'a, T>(start: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check(start, len, name)?;
    // SAFETY: it is not null, its length is one of a slice, and the caller promises the rest.
    Ok(unsafe { slice::from_raw_parts(start, len) })
}

/// Refuses what cannot be the start of a slice of so many elements.
#[inline]
fn check<T>(start: *const T, len: usize, name: &str) -> Result<(), Failure> {
    if start.is_null() {
        return Err(Failure::null(name));
    }
    // A slice has at most isize::MAX bytes.
    if len > isize::MAX.unsigned_abs() / size_of::<T>() {
        let what = format_args!("{name} cannot have a length of {len}");
        return Err(Failure::new(Status::Argument, what));
    }
    Ok(())
}

/// A key, an image or a patch.
///
/// # Safety
/// `data` is null, or followed by `len` bytes that nobody changes.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller promises it.
    unsafe { items(data.cast(), len, "the pointer to bytes") }
}

/// Keys of an array.
///
/// # Safety
/// `keys` is null, or followed by `count` keys, of each of which [`bytes`] may be called.
pub(crate) unsafe fn keys<'a>(keys: *const Key, count: usize) -> Result<Keys<'a>, Failure> {
    // SAFETY: the caller promises it.
    unsafe { items(keys, count, "the array of keys") }.map(Keys)
}

/// Ready hashes of an array.
///
/// # Safety
/// `hashes` is null, or followed by `count` numbers that nobody changes.
pub(crate) unsafe fn hashes<'a>(
    hashes: *const u64,
    count: usize,
) -> Result<&'a [koel::KeyHash], Failure> {
    // SAFETY: the caller promises it, and a hash has the bytes of its number.
    unsafe { items(hashes.cast(), count, "the array of hashes") }
}

/// Where the answers for `count` keys are written, now all zero: no, or 0 copies.
///
/// # Safety
/// `answers` is null, or followed by room for so many `T` that nobody else uses, and zeros are a
/// `T`.
pub(crate) unsafe fn answers<'a, T>(answers: *mut T, count: usize) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(answers, count, "the array for answers")?;
    // SAFETY: it is not null, and the caller promises the room.
    unsafe { answers.write_bytes(0, count) };
    // SAFETY: the elements have just been written, the length is one of a slice, and the caller
    // promises that nobody else uses them.
    Ok(unsafe { slice::from_raw_parts_mut(answers, count) })
}

/// A filter that is asked.
///
/// # Safety
/// It is null, or a filter of this library that nobody changes.
pub(crate) unsafe fn filter<'a>(filter: *const Filter) -> Result<&'a Filter, Failure> {
    // SAFETY: the caller promises it.
    unsafe { filter.as_ref() }.ok_or_else(|| Failure::null("the filter"))
}

/// A filter that is changed.
///
/// # Safety
/// It is null, or a filter of this library that nobody else uses.
pub(crate) unsafe fn filter_mut<'a>(filter: *mut Filter) -> Result<&'a mut Filter, Failure> {
    // SAFETY: the caller promises it.
    unsafe { filter.as_mut() }.ok_or_else(|| Failure::null("the filter"))
}

/// The path of a file: its bytes, or outside Unix UTF-8.
///
/// # Safety
/// `path` is null, or a text that ends with a zero byte and that nobody changes.
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(Failure::null("the path"));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    path_of(unsafe { CStr::from_ptr(path) })
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not every text is a path")]
fn path_of(path: &CStr) -> Result<&Path, Failure> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

#[cfg(not(unix))]
fn path_of(path: &CStr) -> Result<&Path, Failure> {
    let text = path.to_str().map_err(|_| Failure::new(Status::Argument, "the path is not UTF-8"));
    text.map(Path::new)
}

/// Writes an answer, if C wants it.
#[inline]
pub(crate) fn put<T>(place: Option<&mut MaybeUninit<T>>, answer: T) {
    if let Some(place) = place {
        place.write(answer);
    }
}

impl Bytes {
    pub(crate) const NONE: Self = Self { data: std::ptr::null_mut(), len: 0 };

    /// Hands bytes to C. Their memory is as long as they are, so that [`free`](Self::free) needs
    /// no capacity.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let bytes = Box::leak(bytes.into_boxed_slice());
        Self { data: bytes.as_mut_ptr(), len: bytes.len() }
    }

    /// Frees them, and leaves none.
    ///
    /// # Safety
    /// They are [`NONE`](Self::NONE), or [`of`](Self::of) made them, and nobody uses them.
    pub(crate) unsafe fn free(&mut self) {
        let Self { data, len } = std::mem::replace(self, Self::NONE);
        if !data.is_null() {
            // SAFETY: `of` leaked a box of these bytes, and the caller promises that it is the one
            // owner.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, len)) });
        }
    }
}
