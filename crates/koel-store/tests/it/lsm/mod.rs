//! The trials of the ordered store: the same promises as those of the log store, and snapshots,
//! ranges, merges, ingestions and checkpoints among the operations.

mod behaviour;
mod bounds;
mod crash;
mod damage;
mod faults;
mod kill;
#[cfg(target_os = "linux")]
mod memory;
mod merges;
mod model;
mod salvage;
mod threads;
pub(crate) mod trial;
