//! The filter for JavaScript, compiled for `wasm32-unknown-unknown`.
//!
//! ```text
//!     npm/filter.js   the class that users see: throws exceptions
//!     npm/batches.js  batches of keys in pieces; keys.js: a key as bytes
//!     npm/index.js    the main entry, with this module inside; init.js and workerd.js without it
//!     exports.rs      functions with numbers as arguments, called by filter.js
//!     page.rs         what only the page asks: a small table, where a key is, sizes
//!     failure.rs      errors as numbers and sentences
//!     host.rs         the filters behind the handles, and two buffers: the logic, in safe Rust
//! ```
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

#[expect(unsafe_code, reason = "exported names are attributes that count as `unsafe`")]
mod exports;
pub mod failure;
pub mod host;
#[cfg(feature = "page")]
pub mod page;

pub use exports::*;
