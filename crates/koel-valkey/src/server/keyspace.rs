//! Keys of the server, for commands.
//!
//! A key is opened for an access and closed again. Its value stays where it is: only another access
//! of the same command could remove it, and the borrow ends there. So what was opened for writing
//! need not be opened for writing again.

use std::ffi::{CStr, CString, c_int, c_longlong};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::api::{
    FROM_MASTER, KEY_EMPTY, KEY_MODULE, LOADING, NOTIFY_MODULE, READ, RawKey, RawString, RawType,
    WRITE, api,
};
use super::context::{Context, c_string};
use super::settings::{self, settings};
use super::values;
use crate::command::at::ADVANCE;
use crate::command::{Access, Command};
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::header::Origin;
use crate::filter::journal::{Change, Run};
use crate::filter::native::Key;
use crate::keys::{Event, Keys, Value};

static TYPE: AtomicPtr<RawType> = AtomicPtr::new(std::ptr::null_mut());

/// Remembers the data type.
pub(super) fn remember_type(raw: *mut RawType) {
    TYPE.store(raw, Ordering::Release);
}

/// The keys of one command.
pub(super) struct ServerKeys<'a> {
    context: Context,
    strings: &'a [*mut RawString],
    /// The filter that was opened last for writing, and its argument. Only the command itself could
    /// remove it, and it does not.
    opened: Option<(usize, *mut Filter)>,
    change: Option<(usize, Event)>,
    /// Items that were refused for a reason that replicas may not have, while others were not.
    refused: Vec<usize>,
    /// Whether all items were refused so.
    has_refused_all: bool,
    /// The time of the command, once it asked for it.
    now: Option<u64>,
    /// Whether it may have changed a filter with a window.
    timed: bool,
    /// The capacity and the secret of a filter that the command has created.
    created: Option<(u64, Key)>,
    /// Whether a thread runs the command. The server then knows only the arguments that it is told.
    beside: bool,
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
        Self {
            context,
            strings,
            opened: None,
            change: None,
            refused: Vec::new(),
            has_refused_all: false,
            now: None,
            timed: false,
            created: None,
            beside: false,
        }
    }

    /// The same for a thread, as long as it has the lock of the server.
    ///
    /// # Safety
    /// The strings must be live, and the context one of a thread.
    pub(super) unsafe fn beside(context: Context, strings: &'a [*mut RawString]) -> Self {
        // SAFETY: the caller's.
        Self { beside: true, ..unsafe { Self::new(context, strings) } }
    }

    /// Tells replicas, the append-only file and listeners what `command` has changed.
    pub(super) fn announce(&mut self, command: &Command) {
        if self.change.is_none() {
            return;
        }
        let mut further = Vec::new();
        if let Some((capacity, secret)) = self.created {
            let digits = format!("{:032x}", u128::from_le_bytes(secret).swap_bytes());
            if command.name == "RESERVE" {
                further.extend(["SECRET", &digits].map(|word| self.context.string(word)));
            } else {
                self.replicate_reserve(capacity, &digits);
            }
        }
        if self.timed && command.access != Access::Replays {
            let now = self.now();
            self.replicate_at(now, command, &further);
        } else if further.is_empty() && self.refused.is_empty() && !self.beside {
            // SAFETY: the context is live.
            unsafe { (api().ReplicateVerbatim)(self.context.raw()) };
        } else {
            self.replicate_with(command, &further);
        }
        further.into_iter().for_each(|string| self.context.free(string));
        self.notify();
    }

    /// Tells listeners what was changed.
    fn notify(&self) {
        let Some((argument, event)) = self.change else { return };
        let (context, key) = (self.context.raw(), self.strings[argument]);
        let event = settings().event(event).as_ptr();
        // SAFETY: context and key are live.
        unsafe { (api().SignalModifiedKey)(context, key) };
        // SAFETY: context, key and event are live.
        unsafe { (api().NotifyKeyspaceEvent)(context, NOTIFY_MODULE, event, key) };
    }

    /// Replicates `RESERVE key capacity SECRET digits`, before the command that created the filter
    /// so: replicas do not know the secret.
    fn replicate_reserve(&self, capacity: u64, digits: &str) {
        let (reserve, digits) = (self.full_name("RESERVE"), c_string(digits));
        let (context, key) = (self.context.raw(), self.strings[1]);
        let (name, format, word) = (reserve.as_ptr(), c"slcc".as_ptr(), c"SECRET".as_ptr());
        let capacity = c_longlong::try_from(capacity).unwrap_or(c_longlong::MAX);
        let replicate = api().Replicate;
        // SAFETY: the context is live. The format takes a string of the server, a number, and two C
        // strings.
        unsafe { replicate(context, name, format, key, capacity, word, digits.as_ptr()) };
    }

    /// Replicates the command with further arguments, and without refused items.
    fn replicate_with(&self, command: &Command, further: &[*mut RawString]) {
        let (name, arguments) = (self.full_name(command.name), self.arguments_and(further));
        let (context, format) = (self.context.raw(), c"v".as_ptr());
        let (start, len) = (arguments.as_ptr(), arguments.len());
        // SAFETY: the context is live. The format takes strings of the server with their number.
        unsafe { (api().Replicate)(context, name.as_ptr(), format, start, len) };
    }

    /// Replicates the command as `AT milliseconds command key argument..`, without refused items.
    fn replicate_at(&self, now: u64, command: &Command, further: &[*mut RawString]) {
        let (at, mut arguments) = (self.full_name("AT"), self.arguments_and(further));
        let mut name = command.name;
        if self.has_refused_all {
            arguments.truncate(1);
            name = ADVANCE;
        }
        let (context, name) = (self.context.raw(), c_string(name));
        let (at, format, name) = (at.as_ptr(), c"lcv".as_ptr(), name.as_ptr());
        let now = c_longlong::try_from(now).unwrap_or(c_longlong::MAX);
        let (start, len) = (arguments.as_ptr(), arguments.len());
        // SAFETY: the context is live. The format takes a number, a C string, and strings of the
        // server with their number.
        unsafe { (api().Replicate)(context, at, format, now, name, start, len) };
    }

    /// The arguments without refused items, and further ones.
    fn arguments_and(&self, further: &[*mut RawString]) -> Vec<*mut RawString> {
        let is_kept = |number: &usize| self.refused.binary_search(number).is_err();
        let kept = (1..self.strings.len()).filter(is_kept).map(|number| self.strings[number]);
        kept.chain(further.iter().copied()).collect()
    }

    /// Replicates the LOADCHUNK of a chunk.
    pub(super) fn replicate_chunk(&self, argument: usize, iterator: u64, chunk: &[u8]) {
        let (command, key) = (self.full_name("LOADCHUNK"), self.strings[argument]);
        let (context, name, format) = (self.context.raw(), command.as_ptr(), c"slb".as_ptr());
        let iterator = c_longlong::try_from(iterator).unwrap_or(c_longlong::MAX);
        let (bytes, len) = (chunk.as_ptr(), chunk.len());
        // SAFETY: the context is live. The format takes a string of the server, a number, and
        // bytes with their number.
        unsafe { (api().Replicate)(context, name, format, key, iterator, bytes, len) };
    }

    /// Replicates what was done in a key.
    pub(super) fn replicate_run(&self, argument: usize, run: &Run) {
        let (command, words): (_, &[&str]) = match run.change {
            Change::Added => ("INSERT", &["NOCREATE", "ITEMS"]),
            Change::Removed => ("MDEL", &[]),
        };
        let (command, context) = (self.full_name(command), self.context);
        let words = words.iter().map(|word| context.string(word));
        let items = run.items().into_iter().map(|item| context.string(item));
        let made: Vec<_> = words.chain(items).collect();
        let (key, name, format) = (self.strings[argument], command.as_ptr(), c"sv".as_ptr());
        let (start, len) = (made.as_ptr(), made.len());
        // SAFETY: the context is live. The format takes a string of the server, and strings of the
        // server with their number.
        unsafe { (api().Replicate)(context.raw(), name, format, key, start, len) };
        made.into_iter().for_each(|string| context.free(string));
    }

    /// Calls a command of the server on a key with one more argument, and replicates it.
    pub(super) fn call(&self, command: &CStr, argument: usize, more: Option<&str>) -> bool {
        let more = more.map(|word| self.context.string(word));
        let strings: Vec<_> = std::iter::once(self.strings[argument]).chain(more).collect();
        let is_done = self.context.call(command, c"!v", &strings);
        more.into_iter().for_each(|string| self.context.free(string));
        is_done
    }

    /// Lets a key have the name of the first one, which is replaced and keeps its time to live.
    ///
    /// # Errors
    /// [`Error::Moved`] if the server refuses that.
    pub(super) fn rename(&mut self, argument: usize, event: Event) -> Result<(), Error> {
        let expires = self.expires(1).map(|at| at.to_string());
        let command = if expires.is_some() { c"PEXPIREAT" } else { c"PERSIST" };
        let names = [self.strings[argument], self.strings[1]];
        if !self.call(command, argument, expires.as_deref())
            || !self.context.call(c"RENAME", c"!v", &names)
        {
            return Err(Error::Moved);
        }
        self.changed(1, event);
        self.notify();
        Ok(())
    }

    /// The name of a command with the prefix.
    fn full_name(&self, name: &str) -> CString {
        c_string(&format!("{}.{name}", settings().prefix))
    }

    fn open(&self, argument: usize, mode: c_int) -> OpenKey {
        // SAFETY: context and key are live.
        OpenKey(unsafe { (api().OpenKey)(self.context.raw(), self.strings[argument], mode) })
    }

    /// The time at which a key expires, in milliseconds since 1970.
    fn expires(&self, argument: usize) -> Option<c_longlong> {
        let key = self.open(argument, READ);
        if key.0.is_null() {
            return None;
        }
        // SAFETY: the key is open.
        let expires = unsafe { (api().GetAbsExpire)(key.0) };
        (expires >= 0).then_some(expires)
    }

    /// Whether the command comes from the master or from a file.
    pub(super) fn is_settled(&self) -> bool {
        self.context.flags() & (FROM_MASTER | LOADING) != 0
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
        let value = match self.opened {
            Some((opened, filter)) if opened == argument => Value::Filter(filter),
            _ => self.value(argument, READ | WRITE),
        };
        match value {
            Value::Filter(filter) => {
                self.opened = Some((argument, filter));
                // SAFETY: as above.
                let filter = unsafe { &mut *filter };
                self.timed |= filter.expires();
                Value::Filter(filter)
            }
            Value::Foreign => Value::Foreign,
            Value::Missing => Value::Missing,
        }
    }

    fn put(&mut self, argument: usize, filter: Filter) {
        self.timed |= filter.expires();
        if let Value::Filter(old) = self.value(argument, READ | WRITE) {
            // SAFETY: as in `write`. A new value of the server would live for ever.
            unsafe { *old = filter };
            return;
        }
        let key = self.open(argument, READ | WRITE);
        let value = values::into_raw(filter);
        let of_type = TYPE.load(Ordering::Acquire);
        // SAFETY: the key is open for writing, and the server owns the value from now on.
        unsafe { (api().ModuleTypeSetValue)(key.0, of_type, value) };
    }

    fn changed(&mut self, argument: usize, event: Event) {
        self.change = Some((argument, event));
    }

    fn refused(&mut self, items: Vec<usize>) {
        self.refused = items;
    }

    fn refused_all(&mut self) {
        self.has_refused_all = true;
    }

    /// No limit for what the master or a file says: it was checked there, and a replica must not
    /// differ.
    fn limit(&self, bytes: u64) -> u64 {
        let limit = settings::limit();
        if bytes > limit && self.is_settled() { u64::MAX } else { limit }
    }

    fn room(&mut self) -> u64 {
        if self.is_settled() { u64::MAX } else { self.context.room() }
    }

    /// None for what the master or a file says: it has the secret with it.
    fn secret(&mut self) -> Option<Key> {
        if self.is_settled() { None } else { settings::secret() }
    }

    fn created(&mut self, capacity: u64, secret: Key) {
        self.created = Some((capacity, secret));
    }

    fn origin(&self) -> Origin {
        if self.is_settled() { Origin::DataSet } else { Origin::Anywhere }
    }

    /// The time at which the server began with the command, where it says that.
    fn now(&mut self) -> u64 {
        *self.now.get_or_insert_with(|| {
            let (function, ticks) = match api().CachedMicroseconds {
                Some(microseconds) => (microseconds, 1000),
                None => (api().Milliseconds, 1),
            };
            // SAFETY: it takes nothing.
            let time = unsafe { function() };
            u64::try_from(time).unwrap_or(0) / ticks
        })
    }
}
