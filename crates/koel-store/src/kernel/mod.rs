//! What every store stands on: files that can fail, records that tell damage from a torn end, and no write after a failed one.
//!
//! | file | what it is |
//! |---|---|
//! | `files.rs` | the file layer as a trait: the only way to a byte |
//! | `disk.rs` | the file layer over the file system |
//! | `pool.rs` | a folder of which only so many files are open at once |
//! | `access.rs` | whole reads and writes over calls that do a part |
//! | `record.rs` | the one format of a record, and its checksum |
//! | `scan.rs` | the records of a segment, one after the other |
//! | `segment.rs` | one file of records |
//! | `manifest.rs` | which segments live, switched in one step |
//! | `poison.rs` | no write after a failed one |

pub(crate) mod access;
pub(crate) mod disk;
pub mod files;
pub(crate) mod manifest;
pub(crate) mod poison;
pub(crate) mod pool;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod segment;
