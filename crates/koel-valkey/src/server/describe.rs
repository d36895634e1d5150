//! What `COMMAND DOCS`, `COMMAND INFO` and access control lists say of a command.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use super::api::{RawCommand, api};
use super::context::c_string;
use crate::command::syntax::{self, Argument, Kind};
use crate::command::{Access, Command};

/// Key specifications: what a command does to a key.
const READS: u64 = 1 | (1 << 4);
const WRITES: u64 = (1 << 1) | (1 << 4) | (1 << 5);
const BY_INDEX: c_int = 2;
const BY_RANGE: c_int = 2;

/// `RedisModuleCommandInfoVersion`.
#[repr(C)]
struct Version {
    version: c_int,
    history_size: usize,
    key_spec_size: usize,
    argument_size: usize,
}

/// `RedisModuleCommandKeySpec`. Its unions are as large as the members written here and `reserved`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KeySpec {
    notes: *const c_char,
    flags: u64,
    begin: c_int,
    padding: c_int,
    index: c_int,
    reserved: [c_int; 3],
    find: c_int,
    last_key: c_int,
    step: c_int,
    limit: c_int,
}

/// `RedisModuleCommandInfo`.
#[repr(C)]
struct Info {
    version: *const Version,
    summary: *const c_char,
    complexity: *const c_char,
    since: *const c_char,
    history: *const c_void,
    tips: *const c_char,
    arity: c_int,
    key_specs: *const KeySpec,
    arguments: *const RawArgument,
}

/// `RedisModuleCommandArg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawArgument {
    name: *const c_char,
    kind: c_int,
    key_spec: c_int,
    token: *const c_char,
    summary: *const c_char,
    since: *const c_char,
    flags: c_int,
    deprecated_since: *const c_char,
    parts: *const RawArgument,
    display_text: *const c_char,
}

/// Flags of an argument.
const OPTIONAL: c_int = 1;
const MULTIPLE: c_int = 1 << 1;

/// Sizes of `RedisModuleCommandHistoryEntry`, which we do not use, and of the others.
static VERSION: Version = Version {
    version: 1,
    history_size: 2 * size_of::<usize>(),
    key_spec_size: size_of::<KeySpec>(),
    argument_size: size_of::<RawArgument>(),
};

const NO_SPEC: KeySpec = KeySpec {
    notes: ptr::null(),
    flags: 0,
    begin: 0,
    padding: 0,
    index: 0,
    reserved: [0; 3],
    find: 0,
    last_key: 0,
    step: 0,
    limit: 0,
};

/// The key specifications of a command, and an empty one that ends them.
fn key_specs(command: &Command) -> [KeySpec; 3] {
    let index = command.first_key;
    let key = KeySpec { begin: BY_INDEX, index, find: BY_RANGE, step: 1, ..NO_SPEC };
    let flags = if command.access == Access::Reads { READS } else { WRITES };
    let first = KeySpec { flags, ..key };
    let sources = KeySpec { flags: READS, index: 2, last_key: -1, ..key };
    [first, if command.last_key < 0 { sources } else { NO_SPEC }, NO_SPEC]
}

const NO_ARGUMENT: RawArgument = RawArgument {
    name: ptr::null(),
    kind: 0,
    key_spec: -1,
    token: ptr::null(),
    summary: ptr::null(),
    since: ptr::null(),
    flags: 0,
    deprecated_since: ptr::null(),
    parts: ptr::null(),
    display_text: ptr::null(),
};

/// Arguments for the server, with what they point to.
#[derive(Default)]
struct Arguments {
    strings: Vec<CString>,
    lists: Vec<Box<[RawArgument]>>,
}

impl Arguments {
    /// A list of arguments, which an empty one ends.
    fn list(&mut self, arguments: &[Argument]) -> *const RawArgument {
        let list = arguments.iter().map(|argument| self.raw(argument));
        let list: Box<[_]> = list.collect::<Vec<_>>().into_iter().chain([NO_ARGUMENT]).collect();
        let start = list.as_ptr();
        self.lists.push(list);
        start
    }

    fn raw(&mut self, argument: &Argument) -> RawArgument {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let Argument { name, kind, token, is_optional, is_multiple, parts } = argument;
        RawArgument {
            name: self.string(name),
            kind: *kind as c_int,
            key_spec: if *kind == Kind::Key { c_int::from(name == "source") } else { -1 },
            token: token.map_or(ptr::null(), |token| self.string(token)),
            flags: flag(*is_optional, OPTIONAL) | flag(*is_multiple, MULTIPLE),
            parts: if parts.is_empty() { ptr::null() } else { self.list(parts) },
            ..NO_ARGUMENT
        }
    }

    fn string(&mut self, text: &str) -> *const c_char {
        // Its bytes stay where they are when the list of strings grows.
        let string = c_string(text);
        let start = string.as_ptr();
        self.strings.push(string);
        start
    }
}

/// Tells the server about a command.
pub(super) fn describe(raw: *mut RawCommand, command: &Command, category: &str) {
    let (summary, complexity) = (c_string(command.summary), c_string(command.complexity));
    let specs = key_specs(command);
    let mut arguments = Arguments::default();
    let info = Info {
        version: &raw const VERSION,
        summary: summary.as_ptr(),
        complexity: complexity.as_ptr(),
        since: c"0.1.0".as_ptr(),
        history: ptr::null(),
        tips: ptr::null(),
        arity: command.arity,
        key_specs: specs.as_ptr(),
        arguments: arguments.list(&syntax::arguments(command.syntax)),
    };
    // SAFETY: the command was just created. The server copies all of the structure.
    unsafe { (api().SetCommandInfo)(raw, (&raw const info).cast()) };
    if let Some(set) = api().SetCommandACLCategories {
        let access = if command.access == Access::Reads { "read" } else { "write" };
        let speed = if command.fast { "fast" } else { "slow" };
        // A user with all commands of the category should not get the others with them.
        let of = match command.access {
            Access::Replays => "admin dangerous",
            _ if command.is_dangerous() => "dangerous",
            _ => category,
        };
        let categories = c_string(&format!("{of} {access} {speed}"));
        // SAFETY: the command was just created, and the server reads the names now.
        unsafe { set(raw, categories.as_ptr()) };
    }
}
