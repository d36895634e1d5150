//! Durable key-value stores that a cuckoo table guides.
//!
//! [`LogStore`] is an append-only log of keys and values of any size, found through a cuckoo table in memory (`koel::Maplet`): one read for a key that is there, none for
//! one that is not. Its files are described in docs/FORMAT.md, what it was put through in docs/RELIABILITY.md.
#![forbid(unsafe_code)]

pub mod content;
mod error;
mod kernel;
mod log;

pub use error::Error;
pub use kernel::disk::DiskFolder;
pub use kernel::files;
pub use log::{
    Batch, Compacted, Damage, Durability, Iter, Keys, LogStore, Opened, Options, Stats, Torn,
    ValueReader, Verified,
};
