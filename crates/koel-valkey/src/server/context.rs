//! One call of the module: its arguments, its reply, its log lines.

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::slice;

use super::api::{self, RESP3, RawContext, RawString, api};
use crate::command::reply::Reply;
use crate::error::Error;

/// The context of one call.
#[derive(Clone, Copy)]
pub(super) struct Context(*mut RawContext);

impl Context {
    /// The context of the running call.
    ///
    /// # Safety
    /// The server must have passed it to this call, which lasts longer than `Context`.
    pub(super) unsafe fn new(raw: *mut RawContext) -> Self {
        Self(raw)
    }

    pub(super) fn raw(self) -> *mut RawContext {
        self.0
    }

    /// Flags of the call and of the server.
    pub(super) fn flags(self) -> c_int {
        // SAFETY: the context is live.
        unsafe { (api().GetContextFlags)(self.0) }
    }

    /// A string of the server, to be [freed](Self::free).
    pub(super) fn string(self, text: impl AsRef<[u8]>) -> *mut RawString {
        let text = text.as_ref();
        // SAFETY: the context is live, and the server copies the bytes.
        unsafe { (api().CreateString)(self.0, text.as_ptr().cast(), text.len()) }
    }

    pub(super) fn free(self, string: *mut RawString) {
        // SAFETY: `string` made it, and it is freed once.
        unsafe { (api().FreeString)(self.0, string) };
    }

    /// Whether the slot of a key is still this node's: otherwise it refuses any command on it.
    pub(super) fn owns(self, key: *mut RawString) -> bool {
        self.call(c"EXISTS", c"v", &[key])
    }

    /// Calls a command of the server, and replicates it where the format says so. False if the
    /// server does not run it.
    pub(super) fn call(self, command: &CStr, format: &CStr, of: &[*mut RawString]) -> bool {
        let (name, format, call) = (command.as_ptr(), format.as_ptr(), api().Call);
        // SAFETY: the context is live. The format takes strings of the server with their number.
        let reply = unsafe { call(self.0, name, format, of.as_ptr(), of.len()) };
        if !reply.is_null() {
            // SAFETY: the reply is live, and freed once.
            unsafe { (api().FreeCallReply)(reply) };
        }
        !reply.is_null()
    }

    /// Bytes that the server can take below `maxmemory`: what is free, or a quarter of all where it
    /// evicts other keys for them.
    pub(super) fn room(self) -> u64 {
        // SAFETY: the context is live.
        let info = unsafe { (api().GetServerInfo)(self.0, c"memory".as_ptr()) };
        let number = |name: &CStr| {
            let mut error = 0;
            // SAFETY: the section is live.
            unsafe { (api().ServerInfoGetFieldUnsigned)(info, name.as_ptr(), &raw mut error) }
        };
        let (used, most) = (number(c"used_memory"), number(c"maxmemory"));
        // SAFETY: the section is live.
        let policy = unsafe { (api().ServerInfoGetFieldC)(info, c"maxmemory_policy".as_ptr()) };
        // SAFETY: a C string, which lives as long as the section.
        let evicts = !policy.is_null() && unsafe { CStr::from_ptr(policy) } != c"noeviction";
        // SAFETY: the section is freed once.
        unsafe { (api().FreeServerInfo)(self.0, info) };
        match (most, most.saturating_sub(used)) {
            (0, _) => u64::MAX,
            (_, free) if evicts => free.max(most / 4),
            (_, free) => free,
        }
    }

    /// Sends the outcome of a command.
    pub(super) fn answer(self, outcome: &Result<Reply, Error>) {
        match outcome {
            Ok(reply) => self.reply(reply),
            Err(Error::Arity) => {
                // SAFETY: the context is live.
                unsafe { (api().WrongArity)(self.0) };
            }
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// Sends an error.
    pub(super) fn error(self, text: &str) {
        let text = c_string(text);
        // SAFETY: the context is live, and the server copies the text.
        unsafe { (api().ReplyWithError)(self.0, text.as_ptr()) };
    }

    fn reply(self, reply: &Reply) {
        match reply {
            Reply::Ok => self.simple(c"OK"),
            Reply::Text(text) => self.simple(&c_string(text)),
            Reply::Integer(number) => self.integer(*number),
            Reply::Bool(yes) => self.bool(*yes),
            Reply::Bytes(bytes) => self.bytes(bytes),
            Reply::Double(number) => {
                // SAFETY: the context is live.
                unsafe { (api().ReplyWithDouble)(self.0, *number) };
            }
            Reply::Null => {
                // SAFETY: the context is live.
                unsafe { (api().ReplyWithNull)(self.0) };
            }
            Reply::Array(replies) => {
                self.array(replies.len());
                replies.iter().for_each(|reply| self.reply(reply));
            }
            Reply::Bools(answers) => {
                self.array(answers.len());
                answers.iter().for_each(|&yes| self.bool(yes));
            }
            Reply::Added(answers) => self.added(answers),
            Reply::Map(entries) => self.map(entries),
        }
    }

    fn added(self, answers: &[bool]) {
        self.array(answers.len());
        let is_resp3 = self.flags() & RESP3 != 0;
        for &yes in answers {
            match (is_resp3, yes) {
                (true, _) => self.bool(yes),
                (false, true) => self.integer(1),
                (false, false) => self.integer(-1),
            }
        }
    }

    fn map(self, entries: &[(&str, Reply)]) {
        // SAFETY: the context is live; all entries follow.
        unsafe { (api().ReplyWithMap)(self.0, length(entries.len())) };
        for (name, value) in entries {
            self.simple(&c_string(name));
            self.reply(value);
        }
    }

    fn array(self, len: usize) {
        // SAFETY: the context is live; all elements follow.
        unsafe { (api().ReplyWithArray)(self.0, length(len)) };
    }

    fn simple(self, text: &CStr) {
        // SAFETY: the context is live, and the server copies the text.
        unsafe { (api().ReplyWithSimpleString)(self.0, text.as_ptr()) };
    }

    fn integer(self, number: i64) {
        // SAFETY: the context is live.
        unsafe { (api().ReplyWithLongLong)(self.0, number) };
    }

    fn bool(self, yes: bool) {
        // SAFETY: the context is live.
        unsafe { (api().ReplyWithBool)(self.0, c_int::from(yes)) };
    }

    fn bytes(self, bytes: &[u8]) {
        // SAFETY: the context is live, and the server copies the bytes.
        unsafe { (api().ReplyWithStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// Writes a line to the server's log, if there is a server.
pub(super) fn log(level: &CStr, text: &str) {
    let text = c_string(text);
    if let Some(api) = api::loaded() {
        let none = std::ptr::null_mut();
        // SAFETY: a log line needs no context; the format takes one C string.
        unsafe { (api.Log)(none, level.as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
    }
}

/// The strings of a call.
///
/// # Safety
/// The server must have passed both to this call.
pub(super) unsafe fn strings<'a>(argv: *mut *mut RawString, argc: c_int) -> &'a [*mut RawString] {
    let len = usize::try_from(argc).unwrap_or(0);
    // A module without arguments gets a null pointer.
    if len == 0 {
        return &[];
    }
    // SAFETY: the server passes so many strings, which it does not change during the call.
    unsafe { slice::from_raw_parts(argv, len) }
}

/// The bytes of a string.
///
/// # Safety
/// The string must be live for `'a`, and not be changed.
pub(super) unsafe fn bytes<'a>(string: *mut RawString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the string is live.
    let start: *const c_char = unsafe { (api().StringPtrLen)(string, &raw mut len) };
    // SAFETY: the server returns its bytes, which live as long as the string.
    unsafe { slice::from_raw_parts(start.cast(), len) }
}

/// The bytes of all strings.
///
/// # Safety
/// The strings must be live for `'a`, and not be changed.
pub(super) unsafe fn all_bytes<'a>(strings: &[*mut RawString]) -> Vec<&'a [u8]> {
    // SAFETY: the caller's.
    strings.iter().map(|&string| unsafe { bytes(string) }).collect()
}

/// Arguments that are passed without an allocation: those of a command of one item.
const FEW: usize = 4;

/// Passes the bytes of all strings to `work`.
///
/// # Safety
/// The strings must be live during the call, and not be changed.
pub(super) unsafe fn with_bytes(strings: &[*mut RawString], work: impl FnOnce(&[&[u8]])) {
    let mut few: [&[u8]; FEW] = [&[]; FEW];
    let Some(few) = few.get_mut(..strings.len()) else {
        // SAFETY: the caller's.
        return work(&unsafe { all_bytes(strings) });
    };
    for (place, &string) in few.iter_mut().zip(strings) {
        // SAFETY: the caller's.
        *place = unsafe { bytes(string) };
    }
    work(few);
}

/// Text for the server. Ends at the first zero byte, which ours does not have.
pub(super) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

fn length(len: usize) -> c_long {
    c_long::try_from(len).unwrap_or(c_long::MAX)
}
