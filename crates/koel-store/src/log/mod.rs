//! The log store: keys and values of any size in an append-only log, indexed by a cuckoo table.
//!
//! Each file imports only files further down:
//!
//! | file | what it is |
//! |---|---|
//! | `log_store.rs` | the public type |
//! | `background.rs` | the threads that compact, and that sync a segment while it fills |
//! | `salvage.rs` | reading what is left of a store that does not open |
//! | `verify.rs` | checking everything |
//! | `compact.rs`, `pick.rs` | rewriting segments without dead records |
//! | `open.rs` | opening: replaying the log into the index |
//! | `write.rs` | writing |
//! | `iter.rs` | reading all keys, as of one moment |
//! | `read.rs` | reading one key, and whose a record was that can no longer be read |
//! | `store.rs` | what all of these share, and the order of locks |
//! | `state.rs` | plain data in it |
//! | `segments.rs` | the live segments; locations |
//! | `index.rs` | hash -> locations, in memory |
//! | `hint.rs` | what the index needs to know of a segment |
//! | `options.rs` | how a store is opened |

mod background;
mod compact;
mod hint;
mod index;
mod iter;
mod log_store;
mod open;
mod options;
mod pick;
mod read;
mod salvage;
mod segments;
mod state;
mod store;
mod verify;
mod write;

pub use compact::CompactReport;
pub use iter::{Iter, Keys};
pub use log_store::LogStore;
pub use options::LogOptions;
pub use read::ValueReader;
pub use state::LogOpenReport;
pub use store::LogStats;
pub use verify::LogVerifyReport;

#[cfg(test)]
mod tests;
