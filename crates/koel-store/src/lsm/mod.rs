//! The LSM store: sorted tables, and one cuckoo maplet that says which of them may hold a key.
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `lsm_store.rs` | the public type |
//! | `background.rs` | the threads that flush, merge and sync |
//! | `salvage.rs` | reading what is left of a store that does not open |
//! | `verify.rs` | checking everything |
//! | `checkpoint.rs` | a consistent copy |
//! | `snapshot.rs` | a view of the store as of one moment |
//! | `stats.rs` | statistics |
//! | `ingest.rs` | sorted entries as a table at once |
//! | `close.rs` | flushing and merging everything, closing |
//! | `open.rs` | opening: what is sound, what is damage, what is a torn end |
//! | `write.rs` | writing, and waiting while merges are behind |
//! | `jobs.rs`, `flush.rs` | runs become one, memtables become runs |
//! | `overwritten.rs` | whether a damaged block can be left out of a merge |
//! | `install.rs` | switching to the next version, on disk and in memory |
//! | `tend.rs` | the guide follows the runs |
//! | `read.rs` | reading one key |
//! | `store.rs` | what all of these share, and the order of locks |
//! | `failed.rs` | which runs merges leave alone |
//! | `switch.rs`, `snapshots.rs` | what readers and writers share |
//! | `state.rs`, `version.rs` | the memtables, runs and guide of one moment |
//! | `wal.rs` | the log: entries that are in no table yet |
//! | `memtable.rs` | the newest entries, in memory |
//! | `options.rs` | how a store is opened |
//! | `compaction/` | which runs are merged, and what is kept |
//! | `iter/` | entries of memtables and tables as one sequence; ranges |
//! | `guide/` | which runs may hold a key |
//! | `table/` | table files: sorted entries that never change |
//! | `cursor.rs` | a place in sorted entries |
//! | `entry.rs` | an entry, and the order of entries |

mod background;
mod checkpoint;
mod close;
mod compaction;
mod cursor;
mod entry;
mod failed;
mod flush;
mod guide;
mod ingest;
mod install;
mod iter;
mod jobs;
mod lsm_store;
mod memtable;
mod open;
mod options;
mod overwritten;
mod read;
mod salvage;
mod snapshot;
mod snapshots;
mod state;
mod stats;
mod store;
mod switch;
mod table;
mod tend;
mod verify;
mod version;
mod wal;
mod write;

pub use compaction::CompactionPolicy;
pub use iter::Range;
pub use lsm_store::LsmStore;
pub use options::{Compression, LsmOptions};
pub use snapshot::Snapshot;
pub use stats::{LsmStats, RunStats};
pub use store::LsmOpenReport;
#[cfg(feature = "trials")]
pub use table::trial as table_trial;
pub use verify::LsmVerifyReport;
