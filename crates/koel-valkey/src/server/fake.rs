//! Functions of a server that tests call: memory, moves of memory, and an RDB file.
//!
//! [`load`] fills the table of functions, so that callbacks of the module can be called without a
//! server. Memory is that of the C library before and after, so that either can free what the other
//! has allocated.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use super::api::{self, ERR, GetApi, OK, RawDefrag, RawIo};
use super::values;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(memory: *mut c_void, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn malloc_usable_size(memory: *mut c_void) -> usize;
}

/// What becomes of memory that the module asks the server to move.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// It stays.
    None,
    /// All of it moves.
    All,
}

thread_local! {
    static MOVES: Cell<Moves> = const { Cell::new(Moves::None) };
    static MOVED: Cell<usize> = const { Cell::new(0) };
    static SAVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes these functions those of the server.
pub(super) fn load() {
    let mut get: GetApi = find;
    // SAFETY: the first word of this context is the function that finds the others.
    let loaded = unsafe { api::find_all((&raw mut get).cast()) };
    assert!(loaded.is_ok());
}

/// How many allocations have moved during `work`.
pub(super) fn while_it_moves(moves: Moves, work: impl FnOnce()) -> usize {
    MOVES.set(moves);
    MOVED.set(0);
    work();
    MOVED.take()
}

/// The bytes of a value in an RDB file.
pub(super) fn saved(value: *mut c_void) -> Vec<u8> {
    // SAFETY: the value is live. The functions below need no file.
    unsafe { values::rdb_save(ptr::null_mut(), value) };
    SAVED.take()
}

/// Finds a function by its name. What tests do not need ends the process.
unsafe extern "C" fn find(name: *const c_char, function: *mut c_void) -> c_int {
    // SAFETY: the caller passes a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    let found = match name.trim_start_matches("RedisModule_") {
        "TryAlloc" => malloc as *const c_void,
        "Calloc" => calloc as *const c_void,
        "Realloc" => realloc as *const c_void,
        "Free" => free as *const c_void,
        "DefragAlloc" => move_memory as *const c_void,
        "SaveUnsigned" => save_number as *const c_void,
        "SaveStringBuffer" => save_string as *const c_void,
        // As in Redis 7.0.
        "TryCalloc" | "TryRealloc" | "CachedMicroseconds" => return ERR,
        _ => unexpected as *const c_void,
    };
    // SAFETY: the caller passes the place of a function pointer.
    unsafe { function.cast::<*const c_void>().write(found) };
    OK
}

extern "C" fn unexpected() {
    panic!("a function of the server that this test does not have");
}

unsafe extern "C" fn move_memory(_: *mut RawDefrag, old: *mut c_void) -> *mut c_void {
    if MOVES.get() == Moves::None {
        return ptr::null_mut();
    }
    MOVED.set(MOVED.get() + 1);
    // SAFETY: the C library allocated it.
    let size = unsafe { malloc_usable_size(old) };
    // SAFETY: any size may be asked for.
    let new = unsafe { malloc(size) };
    assert!(!new.is_null());
    // SAFETY: both have so many bytes, and they are different.
    unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), size) };
    // SAFETY: whoever uses the old bytes must fail: they are gone.
    unsafe { ptr::write_bytes(old.cast::<u8>(), 0xa5, size) };
    // SAFETY: the C library allocated it, and it is freed once.
    unsafe { free(old) };
    new
}

unsafe extern "C" fn save_number(_: *mut RawIo, number: u64) {
    SAVED.with_borrow_mut(|saved| saved.extend(number.to_le_bytes()));
}

unsafe extern "C" fn save_string(_: *mut RawIo, start: *const c_char, len: usize) {
    // SAFETY: the module passes so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) };
    SAVED.with_borrow_mut(|saved| {
        saved.extend(len.to_le_bytes());
        saved.extend(bytes);
    });
}
