//! What the server does with a value: saves, loads, copies, measures and frees it.
//!
//! The server may free values on a thread of its own. It saves them in a child process.

use std::any::Any;
use std::convert::Infallible;
use std::ffi::{c_int, c_longlong, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::slice;

use super::api::{
    BEFORE_KEYS, IS_CHILD, LOADING, OK, RawDigest, RawIo, RawString, TypeMethods, api,
};
use super::context::{c_string, log};
use super::defrag;
use super::settings::{self, settings};
use crate::command::transfer;
use crate::filter::Filter;
use crate::filter::header::Origin;
use crate::filter::record::{self, Sink, Source};
use crate::totals::{FILTERS, PANICS};

/// Freeing so many bytes counts as one step. The server frees what takes more than 64 steps on
/// another thread.
const BYTES_A_STEP: usize = 4096;
const DIGEST_BYTES: usize = 1 << 20;

/// The functions of the type, of which those of no filter save something only if a file is to have
/// a secret.
pub(super) fn methods(saves_secret: bool) -> TypeMethods {
    TypeMethods { aux_save_triggers: if saves_secret { BEFORE_KEYS } else { 0 }, ..METHODS }
}

const METHODS: TypeMethods = TypeMethods {
    version: 5,
    rdb_load,
    rdb_save,
    aof_rewrite,
    mem_usage,
    digest,
    free,
    aux_load,
    aux_save,
    aux_save_triggers: BEFORE_KEYS,
    free_effort,
    unlink: ptr::null(),
    copy,
    defrag: defrag::move_value,
    mem_usage2: ptr::null(),
    free_effort2: ptr::null(),
    unlink2: ptr::null(),
    copy2: ptr::null(),
    aux_save2: aux_save_if_needed,
};

/// Saves the secret of the data set, so that a restart and a failover keep it. Redis 7.0 writes the
/// name of the type to each file before it calls this.
unsafe extern "C" fn aux_save(io: *mut RawIo, _when: c_int) {
    let secret = settings::saved_secret();
    Sink::string(&mut File(io), secret.as_ref().map_or(&[], |key| &key[..]));
}

/// The same for later servers, which read a file to which nothing was written without the module.
unsafe extern "C" fn aux_save_if_needed(io: *mut RawIo, when: c_int) {
    if FILTERS.get() > 0 {
        // SAFETY: the caller's.
        unsafe { aux_save(io, when) };
    }
}

unsafe extern "C" fn aux_load(io: *mut RawIo, encoding: c_int, _when: c_int) -> c_int {
    let key = Source::string(&mut File(io), |bytes| bytes.try_into().ok()).flatten();
    if encoding == record::ENCODING
        && let Some(key) = key
    {
        settings::adopt(key);
    }
    OK
}

/// Hands a filter to the server.
pub(super) fn into_raw(filter: Filter) -> *mut c_void {
    FILTERS.add(1);
    Box::into_raw(Box::new(filter)).cast()
}

/// Runs `work`, and returns what it panicked with, after it is in the log.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        PANICS.add(1);
        let text = format!("koel has a defect, please report it: {}", message(&*panic));
        log(c"warning", &text);
        text
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// The filter of a value.
///
/// # Safety
/// `value` must be one that [`into_raw`] made and that is not freed.
unsafe fn filter<'a>(value: *const c_void) -> &'a Filter {
    // SAFETY: the caller's.
    unsafe { &*value.cast() }
}

unsafe extern "C" fn rdb_load(io: *mut RawIo, encoding: c_int) -> *mut c_void {
    // RESTORE brings bytes of a client while nothing is loaded.
    let of = if flags() & LOADING != 0 { Origin::DataSet } else { Origin::Anywhere };
    let loaded = guarded(|| record::load(encoding, of, &mut File(io)));
    let problem = match loaded {
        Ok(Ok(filter)) => return into_raw(filter),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic,
    };
    let problem = c_string(&format!("a filter cannot be loaded: {problem}"));
    let (level, format) = (c"warning", c"%s");
    // SAFETY: the file is open; the format takes one C string.
    unsafe { (api().LogIOError)(io, level.as_ptr(), format.as_ptr(), problem.as_ptr()) };
    ptr::null_mut()
}

pub(super) unsafe extern "C" fn rdb_save(io: *mut RawIo, value: *mut c_void) {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    let saved = guarded(|| {
        #[cfg(feature = "faults")]
        crate::command::fault::before_save();
        record::save(filter, &mut File(io));
    });
    end_child_unless(saved.is_ok());
}

/// Flags of the server.
fn flags() -> c_int {
    // SAFETY: they need no context.
    unsafe { (api().GetContextFlags)(ptr::null_mut()) }
}

/// The server has no way to hear that a value could not be saved. A child process ends, so that its
/// file is not taken for a good one.
fn end_child_unless(is_saved: bool) {
    if !is_saved && flags() & IS_CHILD != 0 {
        std::process::exit(1);
    }
}

unsafe extern "C" fn aof_rewrite(io: *mut RawIo, key: *mut RawString, value: *mut c_void) {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    let work = || {
        let command = c_string(&format!("{}.LOADCHUNK", settings().prefix));
        transfer::each_chunk(filter, |iterator, chunk| {
            let (name, format) = (command.as_ptr(), c"slb".as_ptr());
            let iterator = c_longlong::try_from(iterator).unwrap_or(c_longlong::MAX);
            let (bytes, len) = (chunk.as_ptr(), chunk.len());
            // SAFETY: the format takes a string of the server, a number, and bytes with their
            // number.
            unsafe { (api().EmitAOF)(io, name, format, key, iterator, bytes, len) };
        });
    };
    end_child_unless(guarded(work).is_ok());
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    // SAFETY: parts of a value were allocated by the server.
    let measure = |address: *const u8, _| unsafe { (api().MallocSize)(address.cast_mut().cast()) };
    guarded(|| filter.allocated_bytes(&measure)).unwrap_or(0)
}

unsafe extern "C" fn digest(digest: *mut RawDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    let add = |bytes: &[u8]| {
        // SAFETY: the digest is live for this call.
        unsafe { (api().DigestAddStringBuffer)(digest, bytes.as_ptr().cast(), bytes.len()) };
        Ok::<(), Infallible>(())
    };
    let work = || {
        let Ok(()) = add(&filter.header().encode());
        let Ok(()) = filter.chunks(DIGEST_BYTES, add);
    };
    drop(guarded(work));
    // SAFETY: the digest is live for this call.
    unsafe { (api().DigestEndSequence)(digest) };
}

pub(super) unsafe extern "C" fn free(value: *mut c_void) {
    FILTERS.subtract(1);
    let work = || {
        // SAFETY: `into_raw` made it, and the server frees it once.
        let filter: Box<Filter> = unsafe { Box::from_raw(value.cast()) };
        drop(filter);
    };
    drop(guarded(work));
}

unsafe extern "C" fn free_effort(_key: *mut RawString, value: *const c_void) -> usize {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    guarded(|| filter.bytes() / BYTES_A_STEP + 1).unwrap_or(1)
}

unsafe extern "C" fn copy(
    _from: *mut RawString,
    _to: *mut RawString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of ours.
    let filter = unsafe { filter(value) };
    match guarded(|| filter.try_clone()) {
        Ok(Ok(copy)) => into_raw(copy),
        // The server says that there is no copy.
        _ => ptr::null_mut(),
    }
}

/// An RDB file, or the bytes of DUMP and RESTORE.
struct File(*mut RawIo);

impl Sink for File {
    fn number(&mut self, number: u64) {
        // SAFETY: the file is open.
        unsafe { (api().SaveUnsigned)(self.0, number) };
    }

    fn string(&mut self, bytes: &[u8]) {
        // SAFETY: the file is open.
        unsafe { (api().SaveStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

impl File {
    fn failed(&self) -> bool {
        // SAFETY: the file is open.
        unsafe { (api().IsIOError)(self.0) != 0 }
    }
}

impl Source for File {
    fn number(&mut self) -> Option<u64> {
        // SAFETY: the file is open.
        let number = unsafe { (api().LoadUnsigned)(self.0) };
        (!self.failed()).then_some(number)
    }

    fn string<T>(&mut self, use_it: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let mut len = 0;
        // SAFETY: the file is open.
        let start = unsafe { (api().LoadStringBuffer)(self.0, &raw mut len) };
        if start.is_null() {
            return None;
        }
        let string = ServerString(start.cast());
        // SAFETY: the server returns so many bytes, which are ours.
        let bytes = unsafe { slice::from_raw_parts(start.cast(), len) };
        let used = (!self.failed()).then(|| use_it(bytes));
        drop(string);
        used
    }
}

/// Bytes that the server allocated, freed when dropped.
struct ServerString(*mut c_void);

impl Drop for ServerString {
    fn drop(&mut self) {
        // SAFETY: the server allocated it, and it is freed once.
        unsafe { (api().Free)(self.0) };
    }
}
