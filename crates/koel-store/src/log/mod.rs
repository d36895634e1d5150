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
//! | `stats.rs` | statistics |
//! | `compact.rs`, `pick.rs` | rewriting segments without dead records |
//! | `open.rs`, `recover.rs` | opening: what is sound, what is damage, what is a torn end |
//! | `replay_hints.rs`, `replay_record.rs` | replaying the log into the index |
//! | `write.rs` | writing |
//! | `rollover.rs` | the next segment |
//! | `iter.rs`, `view.rs` | reading all keys, as of one moment |
//! | `damaged.rs` | whose a record was that can no longer be read |
//! | `read.rs`, `value.rs` | reading one key |
//! | `store.rs` | what all of these share, and the order of locks |
//! | `state.rs`, `watch.rs`, `hint_cache.rs` | plain data in it |
//! | `segments.rs` | the live segments; locations |
//! | `index.rs` | hash -> locations, in memory |
//! | `hint.rs` | what the index needs to know of a segment |
//! | `options.rs` | how a store is opened |

mod background;
mod compact;
mod damaged;
mod hint;
mod hint_cache;
mod index;
mod iter;
mod log_store;
mod open;
mod options;
mod pick;
mod read;
mod recover;
mod replay_hints;
mod replay_record;
mod rollover;
mod salvage;
mod segments;
mod state;
mod stats;
mod store;
mod value;
mod verify;
mod view;
mod watch;
mod write;

pub use compact::CompactReport;
pub use iter::{Iter, Keys};
pub use log_store::LogStore;
pub use options::LogOptions;
pub use state::LogOpenReport;
pub use stats::LogStats;
pub use value::ValueReader;
pub use verify::LogVerifyReport;

#[cfg(test)]
mod tests;
