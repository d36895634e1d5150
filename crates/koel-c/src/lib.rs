//! The filter for C, and all that speak C: C++, Go, Zig, Lua, nginx.
//!
//! ```text
//!     include/koel.h     what C programs see, made of exports.rs by cbindgen (tests/header.rs)
//!     include/koel.hpp   a class for C++: header only
//!     examples/go        a package for Go, by cgo
//!     exports.rs         the functions: each passes its arguments to Filter
//!     raw.rs             pointers and lengths of C as slices of Rust
//!     status.rs          errors as codes; last_error.rs: their texts, thread by thread
//!     filter.rs          a filter in memory or in a mapped file: the logic, in safe Rust
//! ```
//!
//! **Shapes.** A filter is an opaque pointer. A function returns a status, and writes what it found
//! through pointers. `koel_contains` and its like return the answer itself, or a negative status:
//! an error is never taken for "absent" (docs/decisions/0053-c.md).
//!
//! **Pointers.** A pointer that may be null is an `Option<&T>` here, which has the same bytes. Only
//! a pointer beside a length needs `unsafe`: what C promises about it stands at the top of koel.h.

#[expect(unsafe_code, reason = "functions with names and pointers of C")]
mod exports;
mod filter;
mod last_error;
#[expect(unsafe_code, reason = "pointers of C become slices here")]
mod raw;
mod status;

pub use exports::*;
pub use filter::{Filter, Info};
pub use raw::{Bytes, Key};
pub use status::Status;
