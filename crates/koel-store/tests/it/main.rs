//! What the stores promise, tried: a model, power failures, failing calls, damaged files, killed
//! processes; and the archive above them.
//!
//! The trials are as long as `KOEL_RELIABILITY` says: a number, `full` for the runs of
//! docs/RELIABILITY.md, or nothing for a slice that fits every day. `KOEL_SEED` is the first seed.
//! `scripts/reliability` runs all of them in full and prints a line for each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod archive;
mod archive_crash;
mod crash;
mod damage;
mod descriptors;
mod disk;
mod faults;
mod kill;
#[cfg(unix)]
mod memory;
mod model;
mod regressions;
mod room;
mod salvage;
mod sync_behind;
mod threads;
mod transplant;
mod trial;
