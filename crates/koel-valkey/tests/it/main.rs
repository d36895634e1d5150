//! The commands on keys in memory: no server is needed.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod arguments;
mod bytes;
mod compat;
mod fuzzed;
mod hostile;
mod lines;
mod model;
mod refute;
mod secret;
mod singles;
mod support;
mod windows;
