//! Durable key-value stores that a cuckoo table guides.
//!
//! [`LogStore`] is an append-only log of keys and values of any size. A cuckoo table in memory
//! (`koel::Maplet`) finds them: a get of a present key takes one read of a file, one of an absent
//! key takes none. docs/FORMAT-STORES.md describes the files, docs/RELIABILITY.md how the store is
//! tested.
//!
//! [`LsmStore`] keeps keys in order: sorted tables and one cuckoo maplet that says which of them
//! may hold a key. It has ranges, snapshots and 2 to 3 bytes of memory per key instead of 9.
//!
//! 64-bit targets only: a value may have 4 GiB, one byte more than 32 bits can count.
#![forbid(unsafe_code)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("koel-store needs a 64-bit target, because a value may have 4 GiB");

pub mod content;
mod error;
mod kernel;
mod log;
mod lsm;

pub use error::{Damage, Error};
pub use kernel::batch::Batch;
pub use kernel::disk::DiskFolder;
pub use kernel::files;
pub use kernel::log_end::Durability;
pub use kernel::recovery::{OpenReport, TornEnd};
pub use kernel::salvage::{SalvageReport, VerifyReport};
pub use kernel::store_files::StoreKind;
pub use log::{CompactReport, Iter, Keys, LogOptions, LogStats, LogStore, Mismatch, ValueReader};
pub use lsm::{
    CompactionPolicy, Compression, LsmOptions, LsmStats, LsmStore, Range, RunStats, Snapshot,
    Transaction, TransactionRange,
};
