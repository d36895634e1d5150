//! Trials of the stores: a model, power failures, failing calls, damaged files, killed processes;
//! and of the archive.
//!
//! `KOEL_RELIABILITY` sets their length: a number, `full` for the runs of docs/RELIABILITY.md, or
//! unset for a short slice. `KOEL_SEED` is the first seed. `scripts/reliability` runs all of them
//! in full and prints a line for each.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod answers;
mod archive;
mod archive_crash;
mod archive_damage;
#[cfg(unix)]
mod archive_heals;
#[cfg(unix)]
mod copies;
mod crash;
mod damage;
mod damage_dropped;
mod damaged_stores;
mod descriptors;
mod disk;
#[cfg(feature = "tracing")]
mod events;
mod exchange;
mod faults;
mod full_disk;
mod gated;
#[cfg(unix)]
mod hostile;
mod kill;
mod lsm;
#[cfg(unix)]
mod memory;
mod model;
mod regressions;
mod salvage;
mod subject;
mod subjects;
mod sync_behind;
mod threads;
mod transplant;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod tree_hostile;
#[cfg(unix)]
mod tree_restore;
mod trial;
mod waiting;
mod wrong_results;
