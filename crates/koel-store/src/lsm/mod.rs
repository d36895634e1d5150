//! The LSM store: sorted tables, and one cuckoo maplet that says which of them may hold a key.
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `compaction/` | which runs are merged, and how |
//! | `iter/` | entries of memtables and tables as one sequence; ranges |
//! | `guide/` | which runs may hold a key |
//! | `table/` | table files: sorted entries that never change |
//! | `cursor.rs` | a place in sorted entries |
//! | `entry.rs` | an entry, and the order of entries |
#![expect(dead_code, unused_imports, reason = "the engine that calls this is built beside it")]

mod compaction;
mod cursor;
mod entry;
mod guide;
mod iter;
mod table;

pub use compaction::CompactionPolicy;
pub use iter::Range;
