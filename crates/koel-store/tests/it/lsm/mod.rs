//! The trials of the ordered store: the same promises as those of the log store, and snapshots,
//! ranges, merges and ingestions among the operations.

mod model;
mod trial;
