//! Measures Koel, its rivals and this machine's limits, side by side in one process.
//!
//! `filters` runs every filter over the same keys; `threads` those that threads can share; `limits` finds how many random cache lines a core of this
//! machine reads a second, which no filter can pass; `growth` follows filters that grow from a thousand keys on; `map` and `thresholds` measure the exact map, `maplet` the maplet; `stores` the log store beside others, `overwrites` what its compaction costs; `report` runs the filters, the limits,
//! growth and the thresholds over many sizes and writes docs/BENCHMARKS.md with its plots.
//!
//! The only crate that knows a rival, but for the Bloom filter in `koel tour`. Figures of different runs should not be compared: a machine has good and bad hours, so compare
//! ratios within one run.

mod args;
mod clock;
mod filters;
mod growth;
mod limits;
mod machine;
mod map;
mod maplet;
mod report;
mod stores;
mod subject;
mod subjects;
mod table;
mod threads;
mod thresholds;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// What stopped a run, as a sentence.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Filters(args) => filters::run(&args),
        Command::Limits(args) => limits::run(&args),
        Command::Map(args) => map::run(&args),
        Command::Maplet(args) => maplet::run(&args),
        Command::Stores(args) => stores::run(&args),
        Command::Overwrites(args) => stores::overwrites::run(&args),
        Command::Thresholds(args) => thresholds::run(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Growth(args) => match &args.plots {
            Some(plots) => report::growth::run(&args, plots),
            None => growth::run(&args),
        },
        Command::Report(args) => report::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("koel-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
