//! The filter for JavaScript, compiled for `wasm32-unknown-unknown`.
//!
//! ```text
//!     npm/ask.js      the class FilterReader that users see: throws exceptions
//!     npm/filter.js   the class CuckooFilter, a reader that also changes
//!     npm/remote-filter.js  the class RemoteFilter, asked by ranges of a file (ranges.js)
//!     npm/module.js   an instance of this module: its buffers, batches and errors
//!     npm/handle.js   a filter in this module; batches.js: batches of keys in pieces; keys.js: a
//!                     key as bytes; options.js: of calls
//!     npm/index.js    the main entry, with this module inside as text (text.js); init.js and
//!                     workerd.js without it; reader.js, remote.js: the same for what only asks
//!     exports.rs      functions with numbers as arguments, called by JavaScript
//!     failure.rs      errors as numbers and sentences
//!     host.rs         the filters behind the handles, and two buffers: the logic, in safe Rust
//!     program.rs      memory and panics, without the standard library
//!     page.rs         what only the page asks: a small table, where a key is, sizes
//! ```
//!
//! **Three modules.** Features choose which functions are exported, and what these do not call is
//! not in the module. `full`, the main one, has what asks and what changes (`exports/ask.rs`,
//! `exports/change.rs`). `local` alone, for `koel-filter/reader`, has what asks; `remote` alone,
//! for `koel-filter/remote`, what asks a filter that lies elsewhere (`exports/remote.rs`).
//!
//! **Why no binding generator.** Its command takes minutes to compile. A handle, two buffers and
//! a dozen functions of numbers need no generated code (docs/decisions/0032-wasm.md).
//!
//! **Buffers.** JavaScript cannot pass a slice. It asks for an input buffer, writes keys or a file
//! image into it, calls a function, and reads the answers from the output buffer. Both buffers
//! belong to Rust, so no function takes a pointer and none can be passed a wrong one.
//!
//! On other targets the crate compiles too, so that its logic is tested and linted with the
//! workspace.

#![cfg_attr(all(target_family = "wasm", not(feature = "page")), no_std)]

extern crate alloc;

#[expect(unsafe_code, reason = "exported names are attributes that count as `unsafe`")]
mod exports;
pub mod failure;
pub mod host;
#[cfg(feature = "page")]
pub mod page;
mod program;

pub use exports::*;
