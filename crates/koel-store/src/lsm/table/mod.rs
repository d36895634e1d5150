//! Table files: sorted entries that never change.
//!
//! ```text
//! +--------+------+------+--------+------+-------+---------+------+------------+--------+
//! | header | data | data | hashes | data | index | .. root | list | properties | footer |
//! +--------+------+------+--------+------+-------+---------+------+------------+--------+
//! ```
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `verify.rs` | a file from its start to its end, damaged or not; checking a table |
//! | `builder.rs` | writing a table in constant memory |
//! | `cursor.rs` | the entries of a table in order |
//! | `hashes.rs` | the hashes of its keys |
//! | `reader.rs` | an open table; one key; blocks in memory |
//! | `index.rs` | finding the block of a key |
//! | `properties.rs` | what is known of a whole table |
//! | `frame.rs` | the file: its two ends, and blocks with checksum and compression between them |
//! | `block.rs` | sorted entries in one piece of memory |

mod block;
mod builder;
mod cursor;
mod frame;
mod hashes;
mod index;
mod properties;
mod reader;
mod verify;

pub(super) use builder::{TableBuilder, TableOptions};
pub(super) use frame::Codec;
pub(super) use properties::TableInfo;
pub(super) use reader::{BlockCache, Table};
pub(super) use verify::{TableFile, verify};

#[cfg(test)]
mod tests;
