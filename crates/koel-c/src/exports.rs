//! The functions of koel.h. Each passes its arguments to [`Filter`].
//!
//! The comments here are those of koel.h, where cbindgen writes them. A function with a pointer
//! beside a length is `unsafe`: what it needs is at the top of koel.h, as `raw.rs` repeats.
//!
//! No panic leaves this file: [`caught`] makes an error of it.
//!
//! An argument that may be null is an `Option`. Where a function writes what it found is memory
//! of C, which nothing may have written: `MaybeUninit`.
#![expect(clippy::missing_safety_doc, reason = "the top of koel.h says it once for all functions")]

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use koel::{KeyHash, Merge};

use crate::filter::{Filter, Info, Settings};
use crate::last_error;
use crate::raw::{self, Bytes, Key, put};
use crate::status::{Failure, Status};

/// Runs the body of a function. A failure becomes its code, and a panic one too.
#[inline]
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Status> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(failure)) => Err(last_error::keep(failure)),
        Err(panic) => Err(panicked(&*panic)),
    }
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Status {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a text");
    let text = format_args!("an error in Koel, please report it: {text}");
    last_error::keep(Failure::new(Status::Internal, text))
}

/// Runs the body of a function that only works or fails.
#[inline]
fn run(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    caught(work).err().unwrap_or(Status::Ok)
}

/// Runs the body of a function that asks: 1, 0, or the status of an error, below 0.
#[inline]
fn ask(work: impl FnOnce() -> Result<bool, Failure>) -> c_int {
    match caught(work) {
        Ok(answer) => c_int::from(answer),
        Err(status) => status as c_int,
    }
}

/// Runs the body of a function that makes something of its own, and `none` of it if it fails. The
/// place may not be null.
fn make<T>(
    place: Option<&mut MaybeUninit<T>>,
    none: T,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Status {
    run(|| {
        let place = place.ok_or_else(|| Failure::null("the place for the result"))?;
        place.write(none);
        place.write(work()?);
        Ok(())
    })
}

fn some(filter: Option<&Filter>) -> Result<&Filter, Failure> {
    filter.ok_or_else(|| Failure::null("the filter"))
}

fn some_mut(filter: Option<&mut Filter>) -> Result<&mut Filter, Failure> {
    filter.ok_or_else(|| Failure::null("the filter"))
}

/// What koel_build may be given besides capacity and rate. A field that is 0, false or NULL is as
/// if it was not given, so start with `koel_options options = {0}`.
#[derive(Debug)]
#[repr(C)]
pub struct Options<'a> {
    /// Grow beyond the capacity instead of returning KOEL_FULL.
    pub grow: bool,
    /// Optimise for speed instead of size.
    pub fast: bool,
    /// Start with room for so many keys, and grow to the capacity and beyond.
    pub grow_from: u64,
    /// The seed of the hash. Filters with different seeds cannot be merged.
    pub seed: Option<&'a u64>,
    /// 16 secret bytes. Keys are then hashed with SipHash-1-3, for keys that an adversary may
    /// choose. Files contain the secret.
    pub secret: *const u8,
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn koel_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version without a zero byte"),
        };
    VERSION.as_ptr()
}

/// The text of the last error in this thread: a sentence in UTF-8, without a line break at its end.
/// Never NULL. It is the library's, and the next error in this thread replaces it.
#[unsafe(no_mangle)]
pub extern "C" fn koel_last_error() -> *const c_char {
    last_error::text()
}

/// Builds an empty filter for so many distinct keys, which always fit, each any number of times.
///
/// An absent key is reported with probability `rate` when the filter is full, and with at most 1.35
/// times that once it has grown. It is above 0 and below 1, such as 0.001. `options` may be NULL.
/// koel_free() frees the filter.
///
/// KOEL_SETTINGS if no filter can be built like this, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_build(
    capacity: u64,
    rate: f64,
    options: Option<&Options<'_>>,
    filter: Option<&mut MaybeUninit<Option<Box<Filter>>>>,
) -> Status {
    make(filter, None, || {
        let secret = options.map_or(ptr::null(), |options| options.secret);
        let len = if secret.is_null() { 0 } else { 16 };
        // SAFETY: it is null, or koel.h asks for 16 bytes.
        let secret = unsafe { raw::bytes(secret.cast(), len) }?;
        let settings = Settings {
            grow: options.is_some_and(|options| options.grow),
            fast: options.is_some_and(|options| options.fast),
            grow_from: options.map_or(0, |options| options.grow_from),
            seed: options.and_then(|options| options.seed).copied(),
            secret: Some(secret).filter(|secret| !secret.is_empty()),
        };
        Filter::build(capacity, rate, &settings).map(Box::new).map(Some)
    })
}

/// Opens a file that any Koel program saved, to be asked only. Constant time, and no memory of its
/// own: the file is mapped, and programs share its pages. koel_free() frees the filter.
///
/// Only the header is checked: koel_verify() checks the rest. Damage never makes a call unsafe, but
/// answers wrong. While the file is open, replace it (as koel_save does), but do not write into it
/// or cut it short: that ends the program with SIGBUS.
///
/// KOEL_IO, and KOEL_BYTES if the header is not that of a filter, or the length not that of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_open(
    path: *const c_char,
    filter: Option<&mut MaybeUninit<Option<Box<Filter>>>>,
) -> Status {
    make(filter, None, || {
        // SAFETY: koel.h asks for a text with a zero byte.
        let path = unsafe { raw::path(path) }?;
        Filter::open(path).map(Box::new).map(Some)
    })
}

/// Reads the bytes of a file, copies them and checks all of them. koel_free() frees the filter.
///
/// KOEL_BYTES if they are not a sound filter, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_from_bytes(
    data: *const c_void,
    len: usize,
    filter: Option<&mut MaybeUninit<Option<Box<Filter>>>>,
) -> Status {
    make(filter, None, || {
        // SAFETY: koel.h asks for `len` bytes.
        let bytes = unsafe { raw::bytes(data, len) }?;
        Filter::from_bytes(bytes).map(Box::new).map(Some)
    })
}

/// A copy in memory, which can be changed. All bytes of a filter of koel_open are checked: so
/// koel_open and koel_copy load a file. koel_free() frees the copy.
///
/// KOEL_BYTES if the file is damaged, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub extern "C" fn koel_copy(
    filter: Option<&Filter>,
    copy: Option<&mut MaybeUninit<Option<Box<Filter>>>>,
) -> Status {
    make(copy, None, || some(filter)?.copy().map(Box::new).map(Some))
}

/// Frees a filter. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn koel_free(filter: Option<Box<Filter>>) {
    run(|| {
        drop(filter);
        Ok(())
    });
}

/// Checks every byte of a filter of koel_open. KOEL_BYTES with the first fault.
#[unsafe(no_mangle)]
pub extern "C" fn koel_verify(filter: Option<&Filter>) -> Status {
    run(|| some(filter)?.verify())
}

/// Whether a key is in: 1, 0, or a koel_status below 0.
///
/// Never 0 for a key that is in. 1 for an absent key with the probability `current_rate` of
/// koel_describe(). Reads two places of the table.
///
/// KOEL_LINES if keys were made of lines and this text gives none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_contains(
    filter: Option<&Filter>,
    key: *const c_void,
    len: usize,
) -> c_int {
    ask(|| {
        // SAFETY: koel.h asks for `len` bytes.
        let key = unsafe { raw::bytes(key, len) }?;
        some(filter)?.contains(key)
    })
}

/// koel_contains() for a ready hash: that of koel_hash(), or any other 64 bits that distinguish
/// keys and were added as such.
#[unsafe(no_mangle)]
pub extern "C" fn koel_contains_hash(filter: Option<&Filter>, hash: u64) -> c_int {
    ask(|| Ok(some(filter)?.contains_hash(KeyHash::new(hash))))
}

/// Whether the host of a URL, or one of its parent domains, is in: 1, 0, or a koel_status below 0.
/// Where keys are texts, also whether the URL itself is.
///
/// KOEL_LINES if the text has no host, and is not in itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_contains_url(
    filter: Option<&Filter>,
    url: *const c_void,
    len: usize,
) -> c_int {
    ask(|| {
        // SAFETY: koel.h asks for `len` bytes.
        let url = unsafe { raw::bytes(url, len) }?;
        some(filter)?.contains_url(url)
    })
}

/// koel_contains() for many keys, some times as fast. `found[i]` is the answer for `keys[i]`.
///
/// KOEL_LINES for the first text that gives no key; KOEL_MEMORY. Then nothing is said of any key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_contains_many(
    filter: Option<&Filter>,
    keys: *const Key,
    count: usize,
    found: *mut bool,
) -> Status {
    run(|| {
        let filter = some(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        // SAFETY: koel.h asks for room for as many answers, and 0 is `false`.
        filter.contains_many(&hashes, unsafe { raw::answers(found, count) }?);
        Ok(())
    })
}

/// koel_contains_hash() for many ready hashes. `found[i]` is the answer for `hashes[i]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_contains_hashes(
    filter: Option<&Filter>,
    hashes: *const u64,
    count: usize,
    found: *mut bool,
) -> Status {
    run(|| {
        // SAFETY: koel.h asks for `count` hashes.
        let hashes = unsafe { raw::hashes(hashes, count) }?;
        // SAFETY: koel.h asks for room for as many answers, and 0 is `false`.
        some(filter)?.contains_many(hashes, unsafe { raw::answers(found, count) }?);
        Ok(())
    })
}

/// The ready hash of a key, which stands for it in every filter with this hash and line options.
///
/// KOEL_LINES if keys were made of lines and this text gives none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_hash(
    filter: Option<&Filter>,
    key: *const c_void,
    len: usize,
    hash: Option<&mut MaybeUninit<u64>>,
) -> Status {
    run(|| {
        // SAFETY: koel.h asks for `len` bytes.
        let key = unsafe { raw::bytes(key, len) }?;
        put(hash, some(filter)?.hash(key)?.get());
        Ok(())
    })
}

/// Adds a key unless the filter reports it. `added` says whether it was added; it may be NULL.
///
/// A false positive is not added either, and is absent once the key whose entry it shares is
/// removed. So use koel_add_copy() if you will remove keys. At most two searches of 8192 slots
/// each, and two steps of growth of 4096 buckets each.
///
/// KOEL_FULL if there is no room and it cannot grow, KOEL_LINES, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_add(
    filter: Option<&mut Filter>,
    key: *const c_void,
    len: usize,
    added: Option<&mut MaybeUninit<bool>>,
) -> Status {
    // SAFETY: koel.h asks for `len` bytes.
    with_hash(filter, unsafe { raw::bytes(key, len) }, |filter, hash| {
        put(added, filter.change()?.insert_unique(&hash)?);
        Ok(())
    })
}

/// koel_add() for a ready hash.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add_hash(
    filter: Option<&mut Filter>,
    hash: u64,
    added: Option<&mut MaybeUninit<bool>>,
) -> Status {
    run(|| {
        put(added, some_mut(filter)?.change()?.insert_unique(&KeyHash::new(hash))?);
        Ok(())
    })
}

/// koel_add() for each of `keys`, in order. `added[i]` says whether `keys[i]` was added.
///
/// KOEL_FULL at the first key that finds no room. Those before it are in, and of a large filter
/// some after it: `added` says which. KOEL_MEMORY: the same; none if there was no memory for their
/// hashes. KOEL_LINES: none is in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_add_many(
    filter: Option<&mut Filter>,
    keys: *const Key,
    count: usize,
    added: *mut bool,
) -> Status {
    run(|| {
        let filter = some_mut(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        // SAFETY: koel.h asks for room for as many answers, and 0 is `false`.
        let added = unsafe { raw::answers(added, count) }?;
        Ok(filter.change()?.insert_unique_many(&hashes, added)?)
    })
}

/// Adds a copy of a key, also of one that is in: it must be removed as often as it was added.
///
/// KOEL_FULL if there is no room and it cannot grow, KOEL_LINES, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_add_copy(
    filter: Option<&mut Filter>,
    key: *const c_void,
    len: usize,
) -> Status {
    // SAFETY: koel.h asks for `len` bytes.
    with_hash(filter, unsafe { raw::bytes(key, len) }, |filter, hash| {
        Ok(filter.change()?.insert(&hash)?)
    })
}

/// koel_add_copy() for a ready hash.
#[unsafe(no_mangle)]
pub extern "C" fn koel_add_copy_hash(filter: Option<&mut Filter>, hash: u64) -> Status {
    run(|| Ok(some_mut(filter)?.change()?.insert(&KeyHash::new(hash))?))
}

/// koel_add_copy() for each of `keys`, in order. `added` says how many were; it may be NULL.
///
/// KOEL_FULL and KOEL_MEMORY at the first key that finds no room: the `added` keys before it are
/// in. KOEL_LINES: none is in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_add_copies(
    filter: Option<&mut Filter>,
    keys: *const Key,
    count: usize,
    added: Option<&mut MaybeUninit<u64>>,
) -> Status {
    run(|| {
        let added = added.map(|added| added.write(0));
        let filter = some_mut(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        let filter = filter.change()?;
        let before = filter.len();
        let worked = filter.insert_many(&hashes);
        if let Some(added) = added {
            *added = filter.len() - before;
        }
        Ok(worked?)
    })
}

/// Removes a copy of a key. `removed` says whether there was one; it may be NULL.
///
/// Remove only keys that were added: another key may have the fingerprint of one that is in, and
/// would take that out.
///
/// KOEL_LINES.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_remove(
    filter: Option<&mut Filter>,
    key: *const c_void,
    len: usize,
    removed: Option<&mut MaybeUninit<bool>>,
) -> Status {
    // SAFETY: koel.h asks for `len` bytes.
    with_hash(filter, unsafe { raw::bytes(key, len) }, |filter, hash| {
        put(removed, filter.change()?.remove(&hash));
        Ok(())
    })
}

/// koel_remove() for a ready hash.
#[unsafe(no_mangle)]
pub extern "C" fn koel_remove_hash(
    filter: Option<&mut Filter>,
    hash: u64,
    removed: Option<&mut MaybeUninit<bool>>,
) -> Status {
    run(|| {
        put(removed, some_mut(filter)?.change()?.remove(&KeyHash::new(hash)));
        Ok(())
    })
}

/// koel_remove() for each of `keys`, in order. `removed[i]` says whether a copy of `keys[i]` was.
///
/// KOEL_LINES and KOEL_MEMORY: none is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_remove_many(
    filter: Option<&mut Filter>,
    keys: *const Key,
    count: usize,
    removed: *mut bool,
) -> Status {
    run(|| {
        let filter = some_mut(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        // SAFETY: koel.h asks for room for as many answers, and 0 is `false`.
        let removed = unsafe { raw::answers(removed, count) }?;
        filter.change()?.remove_many(&hashes, removed);
        Ok(())
    })
}

/// How often a key was added and not removed. Never too low. Too high with the probability
/// `current_rate` of koel_describe(), by the count of another key.
///
/// KOEL_LINES.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_count(
    filter: Option<&Filter>,
    key: *const c_void,
    len: usize,
    count: Option<&mut MaybeUninit<u64>>,
) -> Status {
    run(|| {
        // SAFETY: koel.h asks for `len` bytes.
        let key = unsafe { raw::bytes(key, len) }?;
        let filter = some(filter)?;
        put(count, filter.count(filter.hash(key)?));
        Ok(())
    })
}

/// koel_count() for a ready hash.
#[unsafe(no_mangle)]
pub extern "C" fn koel_count_hash(
    filter: Option<&Filter>,
    hash: u64,
    count: Option<&mut MaybeUninit<u64>>,
) -> Status {
    run(|| {
        put(count, some(filter)?.count(KeyHash::new(hash)));
        Ok(())
    })
}

/// koel_count() for many keys. `counts[i]` is the answer for `keys[i]`.
///
/// KOEL_LINES for the first text that gives no key; KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_count_many(
    filter: Option<&Filter>,
    keys: *const Key,
    count: usize,
    counts: *mut u64,
) -> Status {
    run(|| {
        let filter = some(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        // SAFETY: koel.h asks for room for as many answers, and 0 is a number.
        filter.count_many(&hashes, unsafe { raw::answers(counts, count) }?);
        Ok(())
    })
}

/// Tells the filter that a key was not added. If the filter reports it, it gets a correction, and
/// is not reported any more. `corrected` says whether it got one; it may be NULL.
///
/// Never refute a key that is in: it would be hidden. Adding the key takes its correction back.
///
/// KOEL_FULL if there are as many corrections as slots, KOEL_LINES, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_refute(
    filter: Option<&mut Filter>,
    key: *const c_void,
    len: usize,
    corrected: Option<&mut MaybeUninit<bool>>,
) -> Status {
    // SAFETY: koel.h asks for `len` bytes.
    with_hash(filter, unsafe { raw::bytes(key, len) }, |filter, hash| {
        put(corrected, filter.change()?.refute(&hash)?);
        Ok(())
    })
}

/// koel_refute() for a ready hash.
#[unsafe(no_mangle)]
pub extern "C" fn koel_refute_hash(
    filter: Option<&mut Filter>,
    hash: u64,
    corrected: Option<&mut MaybeUninit<bool>>,
) -> Status {
    run(|| {
        put(corrected, some_mut(filter)?.change()?.refute(&KeyHash::new(hash))?);
        Ok(())
    })
}

/// koel_refute() for each of `keys`, all or none. `corrections` says how many were made; it may be
/// NULL.
///
/// KOEL_MEMBERS if more of them are reported than chance explains: some seem to be in, and would be
/// hidden. With `force` they are refuted all the same. A handful may always be refuted.
/// KOEL_FULL, KOEL_LINES, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_refute_many(
    filter: Option<&mut Filter>,
    keys: *const Key,
    count: usize,
    force: bool,
    corrections: Option<&mut MaybeUninit<u64>>,
) -> Status {
    run(|| {
        let filter = some_mut(filter)?;
        // SAFETY: koel.h asks for `count` keys.
        let hashes = filter.hashes(unsafe { raw::keys(keys, count) }?)?;
        let filter = filter.change()?;
        let made =
            if force { filter.force_refute_many(&hashes)? } else { filter.refute_many(&hashes)? };
        put(corrections, made);
        Ok(())
    })
}

/// Removes all keys and all corrections. The size stays.
#[unsafe(no_mangle)]
pub extern "C" fn koel_clear(filter: Option<&mut Filter>) -> Status {
    run(|| {
        some_mut(filter)?.change()?.clear();
        Ok(())
    })
}

/// Adds the keys of `other`, and adds up the counts of each key: for filters of different events.
///
/// Both were built alike: the same capacity, rate, options and hash. Their false-positive rates add
/// up, but stay within the rate that they were built for while both have room for the union.
/// `other` may be `filter` itself. Takes twice the memory until it returns.
///
/// KOEL_DIFFERENT if they were not built alike, KOEL_FULL if the union does not fit and does not
/// grow, KOEL_RANGE if a count would pass 64 bits, KOEL_BYTES if `other` is damaged, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_merge_sum(filter: *mut Filter, other: *const Filter) -> Status {
    // SAFETY: those of this function.
    unsafe { merge(filter, other, Merge::Sum) }
}

/// koel_merge_sum(), with the larger of both counts of each key: for filters of the same events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_merge_max(filter: *mut Filter, other: *const Filter) -> Status {
    // SAFETY: those of this function.
    unsafe { merge(filter, other, Merge::Max) }
}

/// What changed from this filter to `newer`, some 2 bytes a change, for koel_patched().
/// koel_free_bytes() frees it.
///
/// Both were built alike. Takes time for each byte of both, and the memory of a copy.
///
/// KOEL_DIFFERENT if they were not built alike, KOEL_FULL if the new keys find no room in this
/// filter, KOEL_BYTES if one of them is damaged, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub extern "C" fn koel_patch_to(
    filter: Option<&Filter>,
    newer: Option<&Filter>,
    patch: Option<&mut MaybeUninit<Bytes>>,
) -> Status {
    make(patch, Bytes::NONE, || some(filter)?.patch_to(some(newer)?).map(Bytes::of))
}

/// The filter that a patch of koel_patch_to() makes of this one, which stays as it is. All of it is
/// checked. koel_free() frees it.
///
/// KOEL_BYTES if the patch is damaged, KOEL_BASE if it is for another filter or was applied
/// already, KOEL_FULL, KOEL_MEMORY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_patched(
    filter: Option<&Filter>,
    patch: *const c_void,
    len: usize,
    patched: Option<&mut MaybeUninit<Option<Box<Filter>>>>,
) -> Status {
    make(patched, None, || {
        // SAFETY: koel.h asks for `len` bytes.
        let patch = unsafe { raw::bytes(patch, len) }?;
        some(filter)?.patched(patch).map(Box::new).map(Some)
    })
}

/// Saves to a file: writes a new one beside it, syncs it and renames it. So a crash leaves the old
/// file or the new one. A new file can be read by its owner only; an old one keeps its permissions.
///
/// KOEL_IO. Then the old file is there, unless the text says that it was replaced and only its
/// folder could not be synced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_save(filter: Option<&Filter>, path: *const c_char) -> Status {
    run(|| {
        // SAFETY: koel.h asks for a text with a zero byte.
        let path = unsafe { raw::path(path) }?;
        some(filter)?.save(path)
    })
}

/// The bytes of its file. koel_free_bytes() frees them. KOEL_MEMORY.
#[unsafe(no_mangle)]
pub extern "C" fn koel_to_bytes(
    filter: Option<&Filter>,
    bytes: Option<&mut MaybeUninit<Bytes>>,
) -> Status {
    make(bytes, Bytes::NONE, || some(filter)?.to_bytes().map(Bytes::of))
}

/// Frees bytes, and leaves none: a second call does nothing. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn koel_free_bytes(bytes: Option<&mut Bytes>) {
    if let Some(bytes) = bytes {
        // SAFETY: koel.h asks for bytes that this library made and nobody has freed, or for none.
        unsafe { bytes.free() };
    }
}

/// How many keys are in, the size, the rate and so on. Constant time.
#[unsafe(no_mangle)]
pub extern "C" fn koel_describe(
    filter: Option<&Filter>,
    info: Option<&mut MaybeUninit<Info>>,
) -> Status {
    run(|| {
        put(info, some(filter)?.info());
        Ok(())
    })
}

/// The options of `koel build` by which the keys were made of lines, such as "--format hosts", or
/// "" where every key is its own bytes. The text is the filter's, until that is freed.
///
/// KOEL_LINES if this version does not know them.
#[unsafe(no_mangle)]
pub extern "C" fn koel_line_options(
    filter: Option<&Filter>,
    options: Option<&mut MaybeUninit<*const c_char>>,
) -> Status {
    make(options, ptr::null(), || some(filter)?.line_options())
}

/// Runs a change of a filter by one key.
fn with_hash(
    filter: Option<&mut Filter>,
    key: Result<&[u8], Failure>,
    work: impl FnOnce(&mut Filter, KeyHash) -> Result<(), Failure>,
) -> Status {
    run(|| {
        let filter = some_mut(filter)?;
        let hash = filter.hash(key?)?;
        work(filter, hash)
    })
}

/// # Safety
/// Each is null or a filter of this library. Nobody else uses `filter` or changes `other`.
unsafe fn merge(filter: *mut Filter, other: *const Filter, counts: Merge) -> Status {
    run(|| {
        // One that is merged into itself is read in a copy: nothing else may use what changes.
        let copy = if ptr::eq(filter, other) {
            // SAFETY: the caller promises it, and nothing has changed it yet.
            Some(unsafe { raw::filter(other) }?.copy()?)
        } else {
            None
        };
        let other = match &copy {
            Some(copy) => copy,
            // SAFETY: the caller promises it, and it is not the one that changes.
            None => unsafe { raw::filter(other) }?,
        };
        // SAFETY: the caller promises it, and `other` is another one.
        unsafe { raw::filter_mut(filter) }?.merge(other, counts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_text() -> String {
        // SAFETY: the text of this thread, which ends with a zero byte.
        unsafe { CStr::from_ptr(koel_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!(run(|| panic!("so {} far", 1)), Status::Internal);
        assert_eq!(last_text(), "an error in Koel, please report it: so 1 far");
        assert_eq!(ask(|| panic!("no")), Status::Internal as c_int);
        assert_eq!(last_text(), "an error in Koel, please report it: no");
    }

    #[test]
    fn a_text_with_a_zero_byte_is_kept_without_it() {
        assert_eq!(run(|| Err(Failure::new(Status::Io, "a\0b"))), Status::Io);
        assert_eq!(last_text(), "ab");
    }

    /// koel.h lets any number of threads ask a filter, and any thread free it.
    #[test]
    fn threads_may_share_a_filter() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Filter>();
    }
}
