//! Keys of the server, for commands.
//!
//! A key is opened for each access and closed again. Its value stays where it is: only another
//! access of the same command could remove it, and the borrow ends there.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::api::{
    FROM_MASTER, KEY_EMPTY, KEY_MODULE, LOADING, NOTIFY_MODULE, READ, RawKey, RawString, RawType,
    WRITE, api,
};
use super::context::{Context, c_string};
use super::settings::settings;
use super::values;
use crate::filter::Filter;
use crate::keys::{Keys, Value};

static TYPE: AtomicPtr<RawType> = AtomicPtr::new(std::ptr::null_mut());

/// Remembers the data type.
pub(super) fn remember_type(raw: *mut RawType) {
    TYPE.store(raw, Ordering::Release);
}

/// The keys of one command.
pub(super) struct ServerKeys<'a> {
    context: Context,
    strings: &'a [*mut RawString],
    changes: Vec<(usize, &'static str)>,
}

/// An open key, closed when dropped.
struct OpenKey(*mut RawKey);

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: open, and closed once. A null pointer may be closed.
        unsafe { (api().CloseKey)(self.0) };
    }
}

impl<'a> ServerKeys<'a> {
    /// The keys of a command with these arguments.
    ///
    /// # Safety
    /// The arguments must be those of the running command.
    pub(super) unsafe fn new(context: Context, strings: &'a [*mut RawString]) -> Self {
        Self { context, strings, changes: Vec::new() }
    }

    /// Tells replicas, the append-only file and listeners what was changed.
    pub(super) fn announce(&self) {
        if self.changes.is_empty() {
            return;
        }
        let (context, prefix) = (self.context.raw(), settings().prefix.to_ascii_lowercase());
        // SAFETY: the context is live.
        unsafe { (api().ReplicateVerbatim)(context) };
        for &(argument, event) in &self.changes {
            let event = c_string(&format!("{prefix}.{event}"));
            let key = self.strings[argument];
            // SAFETY: context and key are live.
            unsafe { (api().SignalModifiedKey)(context, key) };
            // SAFETY: context and key are live, and the server copies the event.
            unsafe { (api().NotifyKeyspaceEvent)(context, NOTIFY_MODULE, event.as_ptr(), key) };
        }
    }

    fn open(&self, argument: usize, mode: c_int) -> OpenKey {
        // SAFETY: context and key are live.
        OpenKey(unsafe { (api().OpenKey)(self.context.raw(), self.strings[argument], mode) })
    }

    /// The filter of a key.
    fn value(&self, argument: usize, mode: c_int) -> Value<*mut Filter> {
        let key = self.open(argument, mode);
        if key.0.is_null() {
            return Value::Missing;
        }
        // SAFETY: the key is open.
        match unsafe { (api().KeyType)(key.0) } {
            KEY_EMPTY => return Value::Missing,
            KEY_MODULE => {}
            _ => return Value::Foreign,
        }
        // SAFETY: the key is open and holds a value of a module.
        if unsafe { (api().ModuleTypeGetType)(key.0) } != TYPE.load(Ordering::Acquire) {
            return Value::Foreign;
        }
        // SAFETY: as above.
        Value::Filter(unsafe { (api().ModuleTypeGetValue)(key.0) }.cast())
    }
}

impl Keys for ServerKeys<'_> {
    fn read(&mut self, argument: usize) -> Value<&Filter> {
        match self.value(argument, READ) {
            // SAFETY: values of our type are filters. The server runs one command at a time, and
            // this one does nothing to the key as long as it borrows `self`.
            Value::Filter(filter) => Value::Filter(unsafe { &*filter }),
            Value::Foreign => Value::Foreign,
            Value::Missing => Value::Missing,
        }
    }

    fn write(&mut self, argument: usize) -> Value<&mut Filter> {
        match self.value(argument, READ | WRITE) {
            // SAFETY: as above.
            Value::Filter(filter) => Value::Filter(unsafe { &mut *filter }),
            Value::Foreign => Value::Foreign,
            Value::Missing => Value::Missing,
        }
    }

    fn put(&mut self, argument: usize, filter: Filter) {
        let key = self.open(argument, READ | WRITE);
        let value = values::into_raw(filter);
        let of_type = TYPE.load(Ordering::Acquire);
        // SAFETY: the key is open for writing, and the server owns the value from now on. It frees
        // the value that the key had.
        unsafe { (api().ModuleTypeSetValue)(key.0, of_type, value) };
    }

    fn changed(&mut self, argument: usize, event: &'static str) {
        self.changes.push((argument, event));
    }

    /// No limit for what the master or a file says: it was checked there, and a replica must not
    /// differ.
    fn limit(&self) -> u64 {
        let is_settled = self.context.flags() & (FROM_MASTER | LOADING) != 0;
        if is_settled { u64::MAX } else { settings().limit }
    }
}
