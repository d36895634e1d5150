//! The LSM store: sorted tables, and one cuckoo maplet that says which of them may hold a key.
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `lsm_store.rs` | the public type, and its threads |
//! | `verify.rs` | reading everything: to check it, or to save what is left of it |
//! | `checkpoint.rs` | a consistent copy |
//! | `transaction.rs` | writes that are made if nothing that was read has changed |
//! | `delete_range.rs` | deleting a range of keys |
//! | `changes.rs` | whether something was written since a moment |
//! | `snapshot.rs` | a view of the store as of one moment |
//! | `open.rs` | opening: what is sound, what is damage, what is a torn end |
//! | `write.rs` | writing, and waiting while merges are behind |
//! | `flush.rs` | memtables and sorted entries become runs; the next version |
//! | `jobs.rs` | runs become one |
//! | `tend.rs` | the guide follows the runs |
//! | `read.rs` | reading one key |
//! | `store.rs` | what all of these share, and the order of locks |
//! | `failed.rs` | which runs merges leave alone |
//! | `switch.rs`, `snapshots.rs` | what readers and writers share |
//! | `version.rs` | the memtables, runs and guide of one moment |
//! | `undeleted.rs` | the entries that a read sees behind range deletions |
//! | `wal.rs` | the log: entries that are in no table yet |
//! | `memtable/` | the newest entries, in memory |
//! | `options.rs` | how a store is opened |
//! | `compaction/` | which runs are merged, and what is kept |
//! | `iter.rs` | entries of memtables and tables as one sequence; ranges |
//! | `guide/` | which runs may hold a key |
//! | `table/` | table files: sorted entries that never change |
//! | `range_deletions.rs` | when everything in a part of the keys was deleted |
//! | `entry.rs` | an entry, the order of entries, and a place in them |

mod changes;
mod checkpoint;
mod compaction;
mod delete_range;
mod entry;
mod failed;
mod flush;
mod guide;
mod iter;
mod jobs;
mod lsm_store;
mod memtable;
mod open;
mod options;
mod range_deletions;
mod read;
mod snapshot;
mod snapshots;
mod store;
mod switch;
mod table;
mod tend;
mod transaction;
mod undeleted;
mod verify;
mod version;
mod wal;
mod write;

pub use compaction::CompactionPolicy;
pub use iter::Range;
pub use lsm_store::LsmStore;
pub use options::{Compression, LsmOptions};
pub use snapshot::Snapshot;
pub use store::{LsmStats, RunStats};
pub use transaction::{Transaction, TransactionRange};
