//! The text of the last error of each thread.
//!
//! It is C's errno with a sentence: written by a function that fails, and left alone by one that
//! works. The memory belongs to the thread, so the text is read before its next error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use crate::status::{Failure, Status};

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps the text of a failure, and returns its code. Nothing is kept while the thread ends.
#[cold]
pub(crate) fn keep(failure: Failure) -> Status {
    let mut text = failure.text.into_bytes();
    text.retain(|&byte| byte != 0);
    let text = CString::new(text).unwrap_or_default();
    let _ended = TEXT.try_with(|kept| *kept.borrow_mut() = text).err();
    failure.status
}

/// The text, which is empty before the first error.
pub(crate) fn text() -> *const c_char {
    TEXT.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(CStr::as_ptr(c""))
}
