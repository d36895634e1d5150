//! The verbs, one file each, and the table that leads to them.
#![forbid(unsafe_code)]

mod add;
mod build;
mod check;
mod completions;
mod count;
mod dedup;
mod diff;
mod grow;
mod info;
mod man;
mod merge;
mod plan;
mod remove;
mod similar;
mod store;
mod tour;

use clap::{Parser, Subcommand};

use crate::failure::{Failure, Outcome};

/// Remember millions of keys in a few bits each, ask, and forget
///
/// A filter answers "have I seen this key?" in a few bits for each key. It never misses a key that
/// is in it; it takes an absent key for present at a rate that you choose. Keys can be added,
/// counted and removed.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
#[command(name = "koel", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Keys are lines: the exact bytes between newlines (between NULs with -0). Input is plain, gzip or zstd.

Examples:
  koel build domains.txt -o domains.koel        make a filter of a list
  koel check domains.koel seen.txt              print the lines that are in it
  koel dedup huge.log > once.log                each line once, in order, in few bits each
  koel plan --keys 10M --fpr 0.1%               what it would cost, beside other filters
  koel store import photos --db backups         files into a store, each chunk once
  koel tour                                     all of it on a real list, with every promise checked

Exit codes: 0 found or done, 1 nothing found, 2 error, 3 the filter is full.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a filter of keys
    Build(build::Args),
    /// Print the lines that are, or with -v are not, in a filter
    Check(check::Args),
    /// Put keys into a filter file
    Add(add::Args),
    /// Let a filter file grow when it is full
    Grow(grow::Args),
    /// Take keys out of a filter file
    Remove(remove::Args),
    /// Print how often each line was put into a filter
    Count(count::Args),
    /// Print each line the first time it is seen, in order
    Dedup(dedup::Args),
    /// Make one filter of several
    Merge(merge::Args),
    /// Estimate how many keys two filters have in common
    Similar(similar::Args),
    /// Show what changed between two snapshots of a filter
    Diff(diff::Args),
    /// Show what a filter holds, and check that its bytes are sound
    Info(info::Args),
    /// Work out keys, error rate or memory from the other two, beside other filters
    Plan(plan::Args),
    /// Keep files and records in a store that no crash and no flipped bit deceives
    Store(store::Args),
    /// See all of it done to a real list of 121,570 domains, with every promise checked
    Tour(tour::Args),
    /// Print the manual, or write its pages into a folder
    Man(man::Args),
    /// Print the completions for a shell
    Completions(completions::Args),
}

pub(crate) fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.verb {
        Verb::Build(args) => build::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Add(args) => add::run(&args),
        Verb::Grow(args) => grow::run(&args),
        Verb::Remove(args) => remove::run(&args),
        Verb::Count(args) => count::run(&args),
        Verb::Dedup(args) => dedup::run(&args),
        Verb::Merge(args) => merge::run(&args),
        Verb::Similar(args) => similar::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Plan(args) => plan::run(&args),
        Verb::Store(args) => store::run(&args),
        Verb::Tour(args) => tour::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::Completions(args) => completions::run(&args),
    }
}
