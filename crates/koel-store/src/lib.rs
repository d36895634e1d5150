//! Durable key-value stores that a cuckoo table guides.
//!
//! [`LogStore`] is an append-only log of keys and values of any size, found through a cuckoo table in memory (`koel::Maplet`): one read for a key that is there, none for
//! one that is not. Its files are described in docs/FORMAT.md, what it was put through in docs/RELIABILITY.md.
//!
//! It is built for targets of 64 bits alone: a value may have 4 GiB, which is one byte more than 32 bits can count.
#![forbid(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "koel-store takes values of 4 GiB, which 32 bits cannot count; build it for a target of 64 bits"
);

pub mod content;
mod error;
mod kernel;
mod log;

pub use error::Error;
pub use kernel::disk::DiskFolder;
pub use kernel::files;
pub use log::{
    Batch, Compacted, Damage, Durability, Iter, Keys, LogStore, Opened, Options, Salvaged, Stats,
    Torn, ValueReader, Verified,
};
