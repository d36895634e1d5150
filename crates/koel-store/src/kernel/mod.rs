//! The base of every store: files that can fail, records that tell damage from a torn end, and no
//! write after a failed one.
//!
//! | file | what it is |
//! |---|---|
//! | `files.rs` | the file layer as a trait: all I/O goes through it |
//! | `disk.rs` | the file layer over the file system |
//! | `open_folder.rs` | a folder that stays open, and the regular files in it |
//! | `pool.rs` | a folder that keeps a limited number of files open |
//! | `access.rs` | whole reads and writes over calls that may transfer only a part |
//! | `file_names.rs` | the names of the files of a store |
//! | `file_header.rs` | the header of a numbered file |
//! | `record.rs` | the format of a record, and its checksum |
//! | `segment.rs` | one file of records |
//! | `scan.rs` | the records of a segment, in order |
//! | `manifest.rs` | the kind of a store and its files, replaced in one step |
//! | `batch.rs` | writes that take effect together |
//! | `log_end.rs` | the end of a log: appending, what a failure means, the next file |
//! | `durability.rs` | when a write is acknowledged, and group commit |
//! | `recovery.rs` | opening: where a log ends, and what a crash left behind |
//! | `salvage.rs` | what is left of a store that does not open |
//! | `damage.rs` | damage as a list instead of an error |
//! | `poison.rs` | no write after a failed one |
//! | `folder_lock.rs` | the lock of the folder |
//! | `wakeup.rs` | how background threads are told that there is work |
//! | `random.rs`, `bytes.rs`, `memory.rs`, `counter.rs`, `lock.rs` | small helpers |

pub(crate) mod access;
pub(crate) mod batch;
pub(crate) mod bytes;
pub(crate) mod counter;
pub(crate) mod damage;
pub(crate) mod disk;
pub(crate) mod durability;
pub(crate) mod file_header;
pub(crate) mod file_names;
pub mod files;
pub(crate) mod folder_lock;
pub(crate) mod lock;
pub(crate) mod log_end;
pub(crate) mod manifest;
pub(crate) mod memory;
mod open_folder;
pub(crate) mod poison;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod salvage;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod wakeup;
