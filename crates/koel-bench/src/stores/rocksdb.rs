//! RocksDB through its C API: single unsynced puts with its log on; a block cache of 256 MiB, Bloom
//! filters of 10 bits a key, dynamic levels, two background jobs, no compression.
//!
//! Only in builds with `KOEL_ROCKSDB` set, on machines with its library (`librocksdb-dev`).
#![expect(unsafe_code, reason = "RocksDB has a C interface")]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::slice;

use super::CACHE_BYTES;
use super::entries::Key;
use super::subject::{Store, Tree};
use crate::Failure;

/// An object of the library.
type Object = *mut c_void;

unsafe extern "C" {
    safe fn rocksdb_options_create() -> Object;
    safe fn rocksdb_block_based_options_create() -> Object;
    safe fn rocksdb_cache_create_lru(bytes: usize) -> Object;
    safe fn rocksdb_filterpolicy_create_bloom(bits: f64) -> Object;
    safe fn rocksdb_readoptions_create() -> Object;
    safe fn rocksdb_writeoptions_create() -> Object;
    safe fn rocksdb_flushoptions_create() -> Object;
    fn rocksdb_options_set_create_if_missing(options: Object, on: c_uchar);
    fn rocksdb_options_set_compression(options: Object, kind: c_int);
    fn rocksdb_options_set_max_background_jobs(options: Object, jobs: c_int);
    fn rocksdb_options_set_write_buffer_size(options: Object, bytes: usize);
    fn rocksdb_options_set_disable_auto_compactions(options: Object, on: c_int);
    fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: Object, on: c_uchar);
    fn rocksdb_options_set_block_based_table_factory(options: Object, table: Object);
    fn rocksdb_block_based_options_set_block_cache(table: Object, cache: Object);
    fn rocksdb_block_based_options_set_filter_policy(table: Object, policy: Object);
    fn rocksdb_open(options: Object, path: *const c_char, error: *mut *mut c_char) -> Object;
    fn rocksdb_close(db: Object);
    fn rocksdb_put(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        value: *const u8,
        value_bytes: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_get_pinned(
        db: Object,
        options: Object,
        key: *const u8,
        key_bytes: usize,
        error: *mut *mut c_char,
    ) -> Object;
    fn rocksdb_pinnableslice_value(slice: Object, bytes: *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(slice: Object);
    fn rocksdb_flush(db: Object, options: Object, error: *mut *mut c_char);
    fn rocksdb_flush_wal(db: Object, sync: c_uchar, error: *mut *mut c_char);
    fn rocksdb_property_value(db: Object, name: *const c_char) -> *mut c_char;
    fn rocksdb_create_iterator(db: Object, options: Object) -> Object;
    fn rocksdb_iter_seek(iterator: Object, key: *const u8, key_bytes: usize);
    fn rocksdb_iter_valid(iterator: Object) -> c_uchar;
    fn rocksdb_iter_next(iterator: Object);
    fn rocksdb_iter_value(iterator: Object, bytes: *mut usize) -> *const u8;
    fn rocksdb_iter_destroy(iterator: Object);
    fn rocksdb_free(memory: *mut c_void);
}

/// An open database. The options live as long as the process.
pub(super) struct Rival {
    db: NonNull<c_void>,
    read: Object,
    write: Object,
}

pub(super) fn open(folder: &Path, _keys: u64) -> Result<Rival, Failure> {
    open_with(folder, 64 << 20, true)
}

/// A database that merges nothing by itself.
pub(super) fn unmerged(folder: &Path, memtable_bytes: u64) -> Result<Rival, Failure> {
    open_with(folder, usize::try_from(memtable_bytes)?, false)
}

fn open_with(folder: &Path, memtable_bytes: usize, merges: bool) -> Result<Rival, Failure> {
    let (options, table) = (rocksdb_options_create(), rocksdb_block_based_options_create());
    let (cache, bloom) =
        (rocksdb_cache_create_lru(CACHE_BYTES), rocksdb_filterpolicy_create_bloom(10.0));
    // SAFETY: as for every call below: the objects are those that the library made above, and none
    // was destroyed.
    unsafe { rocksdb_block_based_options_set_block_cache(table, cache) };
    // SAFETY: as above. The table owns the policy from now on.
    unsafe { rocksdb_block_based_options_set_filter_policy(table, bloom) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_block_based_table_factory(options, table) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_create_if_missing(options, 1) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_compression(options, 0) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_max_background_jobs(options, 2) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_write_buffer_size(options, memtable_bytes) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1) };
    // SAFETY: as above.
    unsafe { rocksdb_options_set_disable_auto_compactions(options, c_int::from(!merges)) };
    let path = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: as above; the path ends with a zero byte.
    let db = checked(|error| unsafe { rocksdb_open(options, path.as_ptr(), error) })?;
    let db = NonNull::new(db).ok_or("RocksDB opened nothing")?;
    Ok(Rival { db, read: rocksdb_readoptions_create(), write: rocksdb_writeoptions_create() })
}

/// Makes a call that may return an error as text.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T, Failure> {
    let mut error = null_mut();
    let done = call(&raw mut error);
    if error.is_null() {
        return Ok(done);
    }
    Err(take_text(error).into())
}

/// Copies a text of the library, and frees it.
fn take_text(text: *mut c_char) -> String {
    // SAFETY: every caller passes a text that the library has made, which ends with a zero byte.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: the text is freed once, after its last use.
    unsafe { rocksdb_free(text.cast()) };
    copy
}

impl Store for Rival {
    fn write(&self, entries: &[(Key, &[u8])]) -> Result<(), Failure> {
        for (key, value) in entries {
            let (db, write) = (self.db.as_ptr(), self.write);
            // SAFETY: the database is open, and the pointers are those of slices that live.
            checked(|error| unsafe {
                rocksdb_put(db, write, key.as_ptr(), 16, value.as_ptr(), value.len(), error);
            })?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        // SAFETY: the database is open.
        checked(|error| unsafe { rocksdb_flush_wal(self.db.as_ptr(), 1, error) })
    }

    #[inline]
    fn get<R>(&self, key: &Key, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
        let (db, options) = (self.db.as_ptr(), self.read);
        // SAFETY: the database is open, and the key is a slice that lives.
        let found =
            checked(|error| unsafe { rocksdb_get_pinned(db, options, key.as_ptr(), 16, error) })?;
        if found.is_null() {
            return Ok(None);
        }
        let mut bytes = 0;
        // SAFETY: the slice is one that the library has just made.
        let value = unsafe { rocksdb_pinnableslice_value(found, &raw mut bytes) };
        let value = if value.is_null() {
            &[]
        } else {
            // SAFETY: the library says that so many bytes are there until the slice is destroyed.
            unsafe { slice::from_raw_parts(value, bytes) }
        };
        let answer = read(value);
        // SAFETY: destroyed once, after the last use of its bytes.
        unsafe { rocksdb_pinnableslice_destroy(found) };
        Ok(Some(answer))
    }

    fn close(self) -> Result<(), Failure> {
        self.sync()?;
        // SAFETY: closed once, and not used afterwards.
        unsafe { rocksdb_close(self.db.as_ptr()) };
        Ok(())
    }
}

impl Tree for Rival {
    fn flush(&self) -> Result<(), Failure> {
        let options = rocksdb_flushoptions_create();
        // SAFETY: the database is open; by default the call waits until the flush is done.
        checked(|error| unsafe { rocksdb_flush(self.db.as_ptr(), options, error) })
    }

    fn runs(&self) -> u64 {
        let name = c"rocksdb.num-files-at-level0".as_ptr();
        // SAFETY: the database is open, and the name ends with a zero byte.
        let files = unsafe { rocksdb_property_value(self.db.as_ptr(), name) };
        if files.is_null() { 0 } else { take_text(files).parse().unwrap_or(0) }
    }

    fn scan(
        &self,
        from: &Key,
        count: usize,
        mut read: impl FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        // SAFETY: the database is open.
        let iterator = unsafe { rocksdb_create_iterator(self.db.as_ptr(), self.read) };
        // SAFETY: the iterator is new, and the key is a slice that lives.
        unsafe { rocksdb_iter_seek(iterator, from.as_ptr(), 16) };
        let mut seen = 0;
        // SAFETY: the iterator is destroyed only at the end.
        while seen < count && unsafe { rocksdb_iter_valid(iterator) } != 0 {
            let mut bytes = 0;
            // SAFETY: the iterator is at an entry.
            let value = unsafe { rocksdb_iter_value(iterator, &raw mut bytes) };
            // SAFETY: the library says that so many bytes are there until the iterator moves.
            read(unsafe { slice::from_raw_parts(value, bytes) });
            // SAFETY: the iterator is at an entry.
            unsafe { rocksdb_iter_next(iterator) };
            seen += 1;
        }
        // SAFETY: destroyed once, after its last use.
        unsafe { rocksdb_iter_destroy(iterator) };
        Ok(seen)
    }
}
