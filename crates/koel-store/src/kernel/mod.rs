//! The base of every store: files that can fail, records that tell damage from a torn end, and no
//! write after a failed one.
//!
//! | file | what it is |
//! |---|---|
//! | `files.rs` | the file layer as a trait: all I/O goes through it |
//! | `disk.rs` | the file layer over the file system |
//! | `open_folder.rs` | a folder that stays open, and the regular files in it |
//! | `pool.rs` | a folder that keeps a limited number of files open |
//! | `descriptors.rs` | files that are closed when the process has too many open |
//! | `access.rs` | the lock of a folder; whole reads and writes over partial ones |
//! | `store_files.rs` | the names of the files of a store; a numbered file and its header |
//! | `record.rs` | the format of a record, and its checksum |
//! | `segment.rs` | one file of records |
//! | `damaged.rs` | where damage was found in a file |
//! | `scan.rs` | the records of a segment, in order |
//! | `manifest.rs` | the kind of a store and its files, replaced in one step |
//! | `batch.rs` | writes that take effect together |
//! | `log_end.rs` | the end of a log: appending, failures, group commit, the next file |
//! | `recovery.rs` | opening: where a log ends, and what a crash left behind |
//! | `checkpoint.rs` | a copy in another folder |
//! | `salvage.rs` | what is left of a store that does not open |
//! | `poison.rs` | no write after a failed one |
//! | `threads.rs` | what threads share, and how they are told that there is work |
//! | `bytes.rs`, `memory.rs` | small helpers |

pub(crate) mod access;
pub(crate) mod batch;
pub(crate) mod bytes;
pub(crate) mod checkpoint;
mod damaged;
pub(crate) mod descriptors;
pub(crate) mod disk;
pub(crate) mod events;
pub mod files;
pub(crate) mod log_end;
pub(crate) mod manifest;
pub(crate) mod memory;
mod open_folder;
pub(crate) mod poison;
pub(crate) mod pool;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod salvage;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod store_files;
pub(crate) mod threads;
