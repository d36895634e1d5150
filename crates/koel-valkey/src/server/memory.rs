//! Rust's allocator: the server's, so that `used_memory`, `maxmemory` and `deny-oom` count us.
//!
//! The server's plain functions end the process where there is no memory. Those that return a null
//! pointer instead are used where the server has them (Valkey 8); elsewhere a large request is
//! first tried with `TryAlloc`, which takes addresses and no memory. Before the module is loaded,
//! in tests, and for alignments that the server's functions do not have, it is the system's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use super::api::{Api, loaded};
use crate::totals::{BYTES, note_bytes};

/// Alignment of all that the server allocates.
const ALIGNMENT: usize = 16;
/// From here on it pays to ask for zeros, or to let the memory grow where it is.
const LARGE: usize = 256 << 10;

struct ServerMemory;

#[global_allocator]
static MEMORY: ServerMemory = ServerMemory;

/// The server, if its functions can serve this request.
#[inline]
fn server(layout: Layout) -> Option<&'static Api> {
    loaded().filter(|_| layout.align() <= ALIGNMENT)
}

/// Whether the server has so many bytes, as far as it says so before they are used.
fn is_available(api: &Api, size: usize) -> bool {
    // SAFETY: any size may be asked for.
    let probe = unsafe { (api.TryAlloc)(size) };
    if probe.is_null() {
        return false;
    }
    // SAFETY: just allocated, and used by nobody.
    unsafe { (api.Free)(probe) };
    true
}

/// Counts memory that was just allocated.
#[inline]
fn counted(memory: *mut u8, size: usize) -> *mut u8 {
    if !memory.is_null() {
        BYTES.add(size as u64);
        note_bytes(0);
    }
    memory
}

/// Counts memory that has another size now.
fn moved(memory: *mut u8, before: Layout, size: usize) -> *mut u8 {
    if !memory.is_null() {
        // It may have been copied.
        note_bytes(size as u64);
        BYTES.subtract(before.size() as u64);
    }
    counted(memory, size)
}

// SAFETY: each request goes to one of two sound allocators, and the layout alone decides which one,
// from the moment on at which the module is loaded. Nothing is allocated before.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(api) = server(layout) else {
            // SAFETY: the caller's.
            return unsafe { System.alloc(layout) };
        };
        // SAFETY: any size may be asked for.
        counted(unsafe { (api.TryAlloc)(layout.size()) }.cast(), layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(api) = server(layout) else {
            // SAFETY: the caller's.
            return unsafe { System.alloc_zeroed(layout) };
        };
        let size = layout.size();
        if let Some(calloc) = api.TryCalloc {
            // SAFETY: any size may be asked for.
            return counted(unsafe { calloc(1, size) }.cast(), size);
        }
        if size >= LARGE {
            if !is_available(api, size) {
                return ptr::null_mut();
            }
            // SAFETY: any size may be asked for.
            return counted(unsafe { (api.Calloc)(1, size) }.cast(), size);
        }
        // SAFETY: the caller's.
        let memory = unsafe { self.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: so many bytes were just allocated.
            unsafe { memory.write_bytes(0, size) };
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match server(layout) {
            Some(api) => {
                BYTES.subtract(layout.size() as u64);
                // SAFETY: the server allocated it.
                unsafe { (api.Free)(memory.cast()) }
            }
            // SAFETY: the system allocated it.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(api) = server(layout) else {
            // SAFETY: the caller's.
            return unsafe { System.realloc(memory, layout, size) };
        };
        if let Some(realloc) = api.TryRealloc {
            // SAFETY: the server allocated it.
            return moved(unsafe { realloc(memory.cast(), size) }.cast(), layout, size);
        }
        if !is_available(api, size) {
            return ptr::null_mut();
        }
        // SAFETY: the server allocated it.
        moved(unsafe { (api.Realloc)(memory.cast(), size) }.cast(), layout, size)
    }
}
