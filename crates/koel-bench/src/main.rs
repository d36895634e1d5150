//! Measures Koel and its rivals, side by side in one process.
//!
//! * `filters`: every filter with the same keys
//! * `threads`: filters that threads can share
//! * `growth`: growable filters from a thousand keys on
//! * `map`: the exact map; `maplet`: the maplet
//! * `whole`: merges and other operations on whole filters
//! * `expiring`: filters that forget keys after a window
//! * `stores`: Koel's stores and others; `runs`: absent keys in many unmerged runs; `ycsb`: its six
//!   workloads; `overwrites`: the cost of the log store's compaction; `waits`: the longest puts and
//!   gets, while a store is loaded and overwritten and after its process was killed
//! * `report`: the tables of docs/BENCHMARKS.md, by section; `scripts/plots` draws them
//! * `figures`: keeps what these print in docs/figures, and writes it into the pages
//!
//! The only crate that knows a rival, except for the Bloom filter in `koel tour`. Compare ratios
//! within one run, not figures of different runs: a machine has fast and slow hours.

mod args;
mod clock;
mod expiring;
mod figures;
mod filters;
mod growth;
mod machine;
mod map;
mod maplet;
mod report;
mod stores;
mod subject;
mod subjects;
mod table;
mod threads;
mod whole;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// Why a run stopped, as a sentence.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Filters(args) => filters::run(&args),
        Command::Map(args) => map::run(&args),
        Command::Maplet(args) => maplet::run(&args),
        Command::Whole(args) => whole::run(&args),
        Command::Expiring(args) => expiring::run(&args),
        Command::Stores(args) => stores::run(&args),
        Command::Runs(args) => stores::runs::run(&args),
        Command::Ycsb(args) => stores::workloads::ycsb(&args),
        Command::Overwrites(args) => stores::workloads::overwrites(&args),
        Command::Waits(args) => stores::waits::run(&args),
        Command::WriteUntilKilled(args) => stores::killed::write_until_killed(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Growth(args) => growth::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Figures(args) => figures::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("koel-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
