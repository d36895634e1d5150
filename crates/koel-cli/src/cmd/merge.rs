//! `koel merge`: merges several compatible filters into one.
//!
//! This is for lists that are built in parts, on several machines or days. Filters are compatible
//! if they have the same hash and the same initial geometry: all built with the same `--fpr`,
//! `--prefer` and `--seed`, and all with `--grow` or all with the same `--keys`.
//!
//! Cost: every bucket of every filter is read, and its entries are inserted. Memory: the first
//! filter; the others stay mapped.

use std::path::{Path, PathBuf};

use koel::{CuckooFilter, Merge, MergeError, Store};

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing::{self, RATE};
use crate::filter::target::OutArgs;
use crate::quantity::{bytes, counted, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel build monday.txt --grow -o monday.koel
  koel build tuesday.txt --grow -o tuesday.koel
  koel merge monday.koel tuesday.koel -o week.koel

Build all filters with --grow, or build all with the same --keys.
--fpr, --prefer and --seed must be the same, too.
Growable filters have room for the union, up to several billion keys. Without --grow, --keys must
be the number of keys in the union, or the first filter must be made growable (koel grow).

A key that several filters have gets the sum of its counts, so that each copy can be removed again.
So a file that is named twice counts twice. With --max a key gets the larger count, as in a union of
sets. Copies beyond two take 16 bytes.

Rates of grown filters add up: the union of 64 filters that have grown, each at 0.1%, is at up to
6.4%. If all were built with --keys for the union, it keeps their --fpr.

A correction (koel refute) is kept unless another filter reports its name, which may be a key there.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    /// Two or more filter files
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    out: OutArgs,

    /// Keep the larger count of each key instead of the sum
    #[arg(long)]
    max: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let target = args.out.open()?;
    let how = if args.max { Merge::Max } else { Merge::Sum };
    let (first, others) = args.filters.split_first().expect("clap requires two");
    let first_file = FilterFile::open(first)?;
    let mut union = first_file.load()?;
    let (mut files, mut repeated) = (vec![first_file], copies(&union));
    for path in others {
        let file = FilterFile::open(path)?;
        let view = file.view()?;
        union.merge(&view, how).map_err(|error| merge_failure(first, path, error))?;
        repeated += copies(&view);
        files.push(file);
    }
    let mut dropped = 0;
    for file in &files {
        dropped += file.view()?.corrections_beyond(&union);
    }
    target.write(&union)?;
    let size = union.size_in_bytes();
    let mut report = Report::default();
    report
        .add("keys", union.len(), "keys", sizing::keys_and_capacity(&union))
        .json("capacity", union.capacity())
        .add("size_in_bytes", size, "size", bytes(size as u64))
        .json("fpr_expected", union.false_positive_rate())
        .json("corrections", union.corrections())
        .add("corrections_dropped", dropped, "corrections", corrections(dropped))
        .row(RATE, sizing::rates(&union))
        .warning(sizing::rate_warning(&union))
        .row("hint", copies_hint(&union, repeated));
    target.report(&report.text(args.json))
}

/// About how many copies of keys a filter has beyond one of each.
fn copies(filter: &CuckooFilter<impl Store>) -> u64 {
    filter.len() - sizing::distinct(filter)
}

/// A hint if keys of several filters are counted together although each filter has them once.
fn copies_hint(union: &CuckooFilter, repeated: u64) -> String {
    let shared = copies(union).saturating_sub(repeated);
    if shared as f64 <= 0.1 * sizing::distinct(union) as f64 {
        return String::new();
    }
    let shared = grouped(shared);
    format!(
        "about {shared} copies of keys that several filters have take memory; --max keeps one of each"
    )
}

/// What is said of corrections that the union lacks.
fn corrections(dropped: u64) -> String {
    if dropped == 0 {
        return String::new();
    }
    let dropped = counted(dropped, "correction");
    format!("{dropped} dropped, so those names match again; refute those that are in no list")
}

fn merge_failure(first: &Path, path: &Path, error: MergeError) -> Failure {
    let (first, path) = (first.display(), path.to_owned());
    match error {
        MergeError::Incompatible { field: "growth" } => Failure::Usage(format!(
            "{} has grown, but {first} is not growable; run `koel grow {first}` first",
            path.display()
        )),
        MergeError::Unsound(error) => Failure::Image { path, error },
        error => Failure::Merge { path, error },
    }
}
