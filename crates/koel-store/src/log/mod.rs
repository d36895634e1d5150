//! The log store: keys and values of any size in an append-only log, indexed by a cuckoo table.
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `log_store.rs` | the public type |
//! | `verify.rs` | reading everything: to check it, or to save what is left of it |
//! | `checkpoint.rs` | a copy in another folder |
//! | `compact.rs`, `pick.rs` | rewriting segments without dead records, also in a thread |
//! | `drop_damage.rs` | leaving out damaged bytes that nothing needs |
//! | `open.rs` | opening: replaying the log into the index |
//! | `write.rs` | writing |
//! | `iter.rs` | reading all keys, as of one moment |
//! | `read.rs` | reading one key, and whose a record was that can no longer be read |
//! | `store.rs` | what all of these share, and the order of locks |
//! | `segments.rs` | the live segments; locations |
//! | `index.rs` | hash -> locations, in memory |
//! | `hint.rs` | what the index needs to know of a segment |
//! | `options.rs` | how a store is opened |

mod checkpoint;
mod compact;
mod drop_damage;
mod hint;
mod index;
mod iter;
mod log_store;
mod open;
mod options;
mod pick;
mod read;
mod segments;
mod store;
mod verify;
mod write;

pub use compact::CompactReport;
pub use iter::{Iter, Keys};
pub use log_store::LogStore;
pub use options::LogOptions;
pub use read::ValueReader;
pub use store::LogStats;
pub use write::Mismatch;

#[cfg(test)]
mod tests;
