//! Cuckoo filters for Valkey and Redis: the `CF.*` commands as a module of the server.
//!
//! ```text
//! command/   the commands, as functions from keys and arguments to a reply
//! keys       the keys of a database, as commands see them; a database in memory
//! filter/    the value of a key: ours, RedisBloom's layout, or chunks that are still arriving
//! error      what a command can refuse, in the texts that clients get
//! totals     what INFO counts
//! server/    the module: the only part that knows a server, and the only one with `unsafe`
//! ```
//!
//! docs/VALKEY.md describes the commands; docs/decisions/0030-valkey.md says why they are built
//! this way.

#![deny(unsafe_code)]

pub mod command;
pub mod error;
pub mod filter;
pub mod keys;
#[expect(unsafe_code, reason = "the interface of the server is in C")]
mod server;
mod totals;
