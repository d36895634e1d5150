//! Compaction: which runs are merged, and how.
//!
//! | file | what it is |
//! |---|---|
//! | `policy.rs` | which runs to merge next |
//! | `merge.rs` | several runs into one: what is kept, and which hashes became surplus |
//! | `filter.rs` | which entries the caller no longer wants |

mod filter;
mod merge;
mod policy;

pub(super) use filter::{Filter, Keep};
pub(super) use merge::{Rules, Sink, merge};
pub use policy::CompactionPolicy;
pub(super) use policy::{Picker, RunShape, YoungLimits};
