//! Compaction: which runs are merged, and how.
//!
//! | file | what it is |
//! |---|---|
//! | `policy.rs` | which runs to merge next |
//! | `merge.rs` | several runs into one: what is kept, and which hashes became surplus |

mod merge;
mod policy;

pub(super) use merge::{Filter, Keep, Rules, Sink, merge};
pub use policy::CompactionPolicy;
pub(super) use policy::{Picker, RunShape, YoungLimits};
