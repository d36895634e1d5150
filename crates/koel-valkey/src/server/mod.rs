//! The module of the server. The only part that knows a server, and the only one with `unsafe`.
//!
//! ```text
//! api        functions of the server, looked up by name when the module is loaded
//! memory     Rust's allocator: the server's, so that it counts our memory
//! context    replies, events and log lines of one command
//! keyspace   keys of the server, for commands
//! values     what the server does with a value: save, load, copy, free
//! defrag     moves values to where they leave fewer holes
//! background long commands wait for a thread, while the server goes on
//! beside     what the thread does: the new value of a key, in steps
//! run        a command on keys of the server
//! load       RedisModule_OnLoad: settings, type, commands
//! settings   what the module was loaded with, the secret and the limit
//! describe   COMMAND DOCS and the key specifications
//! fake       functions of a server that tests call
//! ```
//!
//! The bindings are written by hand: some seventy functions that have not changed since Redis 7.0.
//! docs/decisions/0030-valkey.md compares this with the two published ones.
//!
//! A panic ends the command or the callback that it is in, with an error in the reply and in the
//! log, and never the server.

mod api;
mod background;
mod beside;
mod context;
mod defrag;
mod describe;
#[cfg(test)]
mod fake;
mod keyspace;
mod load;
mod memory;
mod run;
mod settings;
mod values;
