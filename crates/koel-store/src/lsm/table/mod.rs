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
//! | `verify.rs`, `salvage.rs` | checking a table; reading what is left of a damaged one |
//! | `builder.rs` | writing a table in constant memory |
//! | `cursor.rs` | the entries of a table in order |
//! | `reader.rs` | an open table; one key |
//! | `hashes.rs` | the hashes of its keys |
//! | `cache.rs` | blocks in memory |
//! | `index.rs` | finding the block of a key |
//! | `properties.rs`, `footer.rs` | what is known of a whole table, and where its parts are |
//! | `frame.rs` | a block in a file: its checksum and compression |
//! | `block.rs` | sorted entries in one piece of memory |

mod builder;
mod cache;
mod cursor;
mod hashes;
mod properties;
mod reader;

pub(super) use builder::TableBuilder;
pub(super) use cache::BlockCache;
pub(super) use cursor::TableCursor;
pub(super) use hashes::Hashes;
pub(super) use properties::TableInfo;
pub(super) use reader::{Found, Table};

/// How the blocks of a table are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Lz4,
    Zstd,
}

/// How a table is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableOptions {
    /// Mixed into checksums; one per store.
    pub(super) salt: u64,
    /// The seed of the hash of keys.
    pub(super) seed: u64,
    /// Bytes of entries at which a block ends, before compression.
    pub(super) block_bytes: usize,
    pub(super) codec: Codec,
}
