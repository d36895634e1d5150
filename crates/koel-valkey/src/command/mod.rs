//! The commands: what they take, what they answer, and what the server should know of them.
//!
//! A command is a function from the database and its arguments to a [`Reply`] or an
//! [`Error`]. It knows no server: tests and fuzzing run it on keys in memory. Its name is without
//! the prefix `CF.`, which is a setting of the module.

pub(crate) mod arguments;
pub(crate) mod at;
pub mod compact;
mod create;
mod delete;
#[cfg(feature = "faults")]
pub(crate) mod fault;
mod insert;
mod inspect;
mod items;
mod look_up;
pub mod merge;
pub mod parts;
mod refute;
pub mod reply;
pub mod syntax;
pub mod transfer;

use crate::error::Error;
use crate::keys::Keys;
use parts::Parts;
use reply::Reply;

/// Runs a command. `arguments[0]` is its name.
pub type Run = fn(&mut dyn Keys, &[&[u8]]) -> Result<Reply, Error>;

/// Whether a command changes keys, as `COMMAND INFO` and access control lists say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Reads,
    /// It may take more memory, and the server refuses it where that is short.
    Writes,
    /// It changes a key, which takes no more memory than before at the end.
    Frees,
    /// It replays what a primary did: not for every user.
    Replays,
}

impl Access {
    /// The flags of the server, beside `fast`.
    #[must_use]
    pub fn flags(self) -> &'static str {
        match self {
            Self::Reads => "readonly",
            Self::Writes => "write deny-oom",
            Self::Frees => "write",
            Self::Replays => "write deny-oom admin",
        }
    }
}

/// A command.
#[derive(Debug)]
pub struct Command {
    /// Its name, in capitals and without the prefix.
    pub name: &'static str,
    /// Runs it.
    pub run: Run,
    /// Whether it changes keys.
    pub access: Access,
    /// Whether its time does not depend on the size of the filter.
    pub fast: bool,
    /// Arguments that it takes, its name included; negative: at least so many.
    pub arity: i32,
    /// The first argument that is a key.
    pub first_key: i32,
    /// The last argument that is a key; -1: all from the first one on.
    pub last_key: i32,
    /// Its arguments, as [`syntax`] reads them.
    pub syntax: &'static str,
    /// One sentence, or two.
    pub summary: &'static str,
    /// How its time grows.
    pub complexity: &'static str,
}

const PER_ITEM: &str = "O(n) for n items";
const ONE: &str = "O(1)";
const ALL: &str = "O(bytes of the filter)";

use Access::{Frees, Reads, Replays, Writes};

macro_rules! commands {
    ($($(#[$only:meta])? $name:literal $run:path, $access:ident $fast:literal $arity:literal
       $first_key:literal $last_key:literal, $syntax:literal, $summary:literal,
       $complexity:ident;)*) => {
        /// All commands.
        pub const COMMANDS: &[Command] = &[$($(#[$only])? Command {
            name: $name, run: $run, access: $access, fast: $fast, arity: $arity,
            first_key: $first_key, last_key: $last_key, syntax: $syntax, summary: $summary,
            complexity: $complexity,
        }),*];
    };
}

commands! {
    "RESERVE" create::reserve, Writes false -3 1 1,
        "key capacity [ERROR rate] [PREFER SMALL|FAST] [EXPANSION n] [BUCKETSIZE n] \
         [MAXITERATIONS n] [WINDOW seconds [WHENFULL FAIL|EVICT]] [SECRET NO|digits]",
        "Creates an empty cuckoo filter.", ALL;
    "ADD" insert::add, Writes true 3 1 1,
        "key item",
        "Adds an item, also if it is in.", ONE;
    "ADDNX" insert::add_absent, Writes true 3 1 1,
        "key item",
        "Adds an item unless it is in.", ONE;
    "INSERT" insert::insert, Writes false -4 1 1,
        "key [CAPACITY n] [NOCREATE] ITEMS item..",
        "Adds items, also those that are in.", PER_ITEM;
    "INSERTNX" insert::insert_absent, Writes false -4 1 1,
        "key [CAPACITY n] [NOCREATE] ITEMS item..",
        "Adds items that are not in.", PER_ITEM;
    "EXISTS" look_up::exists, Reads true 3 1 1,
        "key item",
        "Tells whether an item is in.", ONE;
    "MEXISTS" look_up::exists_many, Reads true -3 1 1,
        "key item..",
        "Tells which items are in.", PER_ITEM;
    "COUNT" look_up::count, Reads true 3 1 1,
        "key item",
        "Tells how often an item was added.", ONE;
    "MCOUNT" look_up::count_many, Reads true -3 1 1,
        "key item..",
        "Tells how often items were added.", PER_ITEM;
    "DEL" delete::delete, Frees true 3 1 1,
        "key item",
        "Removes one copy of an item.", ONE;
    "MDEL" delete::delete_many, Frees true -3 1 1,
        "key item..",
        "Removes one copy of each item.", PER_ITEM;
    "REFUTE" refute::refute, Writes true -3 1 1,
        "key item..",
        "Says that items were not added.", PER_ITEM;
    "COMPACT" compact::compact, Frees false 2 1 1,
        "key",
        "Gives unused memory of a filter back.", ALL;
    "MERGE" merge::merge, Writes false -3 1 -1,
        "destination source..",
        "Adds the items of filters to another, whose own stay. Merged with itself, a filter has \
         each twice.", ALL;
    "INFO" inspect::info, Reads true -2 1 1,
        "key [FULL|field]",
        "Returns the numbers of a filter.", ONE;
    "DEBUG" inspect::debug, Reads true 2 1 1,
        "key",
        "Returns numbers of a filter as text.", ONE;
    "SCANDUMP" transfer::scan_dump, Reads false 3 1 1,
        "key iterator",
        "Returns a filter in chunks, with its secret.", ALL;
    "LOADCHUNK" transfer::load_chunk, Writes false 4 1 1,
        "key iterator chunk",
        "Restores a filter from chunks.", ALL;
    "AT" at::at, Replays false -4 3 3,
        "milliseconds command key [argument..]",
        "Runs a command of a filter as of a time.", PER_ITEM;
    #[cfg(feature = "faults")]
    "FAULT" fault::fault, Reads false -2 1 1, "key [SAVE|BYTES]", "Panics.", ONE;
}

/// Runs the command of this name, in any case, on keys.
///
/// # Errors
/// The error of the command, and [`Error::Arity`] if there is no such command.
pub fn run(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let name = arguments.first().ok_or(Error::Arity)?;
    named(name).ok_or(Error::Arity)?.call(keys, arguments)
}

/// The command of this name, in any case.
pub(crate) fn named(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| name.eq_ignore_ascii_case(command.name.as_bytes()))
}

impl Command {
    /// Whether it reads or writes a filter as a whole, with its secret, or replays what a primary
    /// did: nothing for every user of the others.
    #[must_use]
    pub fn is_dangerous(&self) -> bool {
        self.access == Access::Replays || matches!(self.name, "SCANDUMP" | "LOADCHUNK")
    }

    /// The parts of the command, if it can be run in parts.
    #[must_use]
    pub fn parts(&self) -> Option<Parts> {
        match self.name {
            "MERGE" => Some(Parts { is_long: merge::is_long, work: merge::work }),
            "COMPACT" => Some(Parts { is_long: compact::is_long, work: compact::work }),
            "LOADCHUNK" => Some(Parts { is_long: transfer::is_long, work: transfer::work }),
            _ => None,
        }
    }

    /// Checks the number of arguments, and runs the command.
    ///
    /// # Errors
    /// [`Error::Arity`], or the error of the command.
    pub fn call(&self, keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
        if self.takes(arguments.len()) { (self.run)(keys, arguments) } else { Err(Error::Arity) }
    }

    /// Whether it takes so many arguments.
    #[must_use]
    pub fn takes(&self, count: usize) -> bool {
        let least = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 { count >= least } else { count == least }
    }
}
