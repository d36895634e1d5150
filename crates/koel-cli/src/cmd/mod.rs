//! The verbs, one file each, and the dispatch to them.
//!
//! A verb file has the arguments (`Args`) and `run`. Only `main.rs` and this file know `Cli`.

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
mod patch;
mod plan;
mod pull;
mod push;
mod refute;
mod remove;
mod similar;
mod store;
mod tour;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::{Failure, Outcome};

/// Cuckoo filters: test set membership in a few bits per key
///
/// A filter answers "have I seen this key?" in a few bits per key. It never misses a key that was
/// added. It reports an absent key as present at a false-positive rate that you choose.
/// Keys can be added, removed and counted, and a filter can grow.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
#[command(name = "koel", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:

A block list, from hosts or URLs:
  koel build --format hosts list.txt -o blocked.koel
  koel check --url blocked.koel urls.txt       print the URLs whose host or parent domain is listed
  koel build --format hosts list.txt --never allowed.txt -o b.koel   and no host that is allowed

Lines that were not seen before:
  tail -f events.log | koel dedup              print each line once, as it arrives
  tail -F app.log | koel dedup --window 10m    once within ten minutes
  koel build seen.txt --grow --fpr 1e-6 -o seen.koel      remember them in a filter: it may miss
  koel dedup today.txt | koel check -v seen.koel - > new.txt    one new line in a million
  koel add seen.koel new.txt

What is new between two lists, without missing a line:
  koel build monday.txt --never tuesday.txt -o monday.koel      no false positive on Tuesday
  koel check -v monday.koel tuesday.txt                         print the lines that are new

Also:
  koel plan --keys 10M --fpr 0.1%              memory needed, compared with other filters
  koel store import photos --db backups        store files, equal chunks only once
  koel tour                                    a demonstration on a real list

A key is a line or a field of one, or with -0 the exact bytes before a NUL.
Input may be plain text (UTF-8, UTF-16 or any bytes), gzip or zstd.

A file is replaced in one step: it is complete, or it is the old one. If koel is killed, it may
leave a file .koel-*. The next koel that writes into the folder removes it.

Exit codes: 0 found or done, 1 nothing found, 2 error, 3 the filter is full.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build a filter from keys
    Build(build::Args),
    /// Print the lines that are in a filter, or with -v those that are not
    Check(check::Args),
    /// Add keys to a filter
    Add(add::Args),
    /// Make a filter growable, or resize it
    Grow(grow::Args),
    /// Tell a filter which keys were not added, so that it does not report them
    Refute(refute::Args),
    /// Remove keys from a filter
    Remove(remove::Args),
    /// Print how many times each line was added to a filter
    Count(count::Args),
    /// Print each line once, in order of first appearance, or once in a window of time
    Dedup(dedup::Args),
    /// Merge several filters into one
    Merge(merge::Args),
    /// Estimate how many keys two filters have in common
    Similar(similar::Args),
    /// Show what changed between two snapshots of a filter
    Diff(diff::Args),
    /// Make a newer filter from an older one and a patch
    Patch(patch::Args),
    /// Show the figures of a filter and check it for damage
    Info(info::Args),
    /// Compute memory, false-positive rate or number of keys, compared with other filters
    Plan(plan::Args),
    /// Send a filter to a Valkey or Redis server
    Push(push::Args),
    /// Get a filter from a Valkey or Redis server
    Pull(pull::Args),
    /// Keep files and key-value records in a crash-safe, checksummed store
    Store(store::Args),
    /// Run a demonstration on a real list of domains, every promise checked
    Tour(tour::Args),
    /// Print the manual page, or write all manual pages into a folder
    Man(man::Args),
    /// Print the completion script for a shell
    Completions(completions::Args),
}

pub(crate) fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.verb {
        Verb::Build(args) => build::run(args),
        Verb::Check(args) => check::run(&args),
        Verb::Add(args) => add::run(&args),
        Verb::Grow(args) => grow::run(&args),
        Verb::Refute(args) => refute::run(&args),
        Verb::Remove(args) => remove::run(&args),
        Verb::Count(args) => count::run(&args),
        Verb::Dedup(args) => dedup::run(&args),
        Verb::Merge(args) => merge::run(&args),
        Verb::Similar(args) => similar::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Patch(args) => patch::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Plan(args) => plan::run(&args),
        Verb::Push(args) => push::run(&args),
        Verb::Pull(args) => pull::run(&args),
        Verb::Store(args) => store::run(&args),
        Verb::Tour(args) => tour::run(&args),
        Verb::Man(args) => man::run(&args, Cli::command()),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
    }
}
