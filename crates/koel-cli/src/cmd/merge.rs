//! `koel merge`: one filter of several that were built alike.
//!
//! For lists that are built in pieces, on several machines or days. Filters go together when they have one hash and began with one geometry: all
//! with `--grow`, or all with the same `--keys`, and with the same `--fpr`, `--prefer` and `--seed`. Cost: every bucket of every filter is read and its entries inserted; memory: the first
//! filter, the others stay mapped.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use koel::{Merge, MergeError};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter_file::{self, FilterFile};
use crate::output;
use crate::quantity::{bytes, rate};
use crate::sizing;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Filters can be merged when all were built with --grow, which a pipe implies, and equal --fpr, --prefer and --seed:
then any union fits. Or with equal --keys as well, the number of keys of the union, which must fit; it need not
where the first may grow (koel grow).

Examples:
  koel build monday.txt --grow -o monday.koel
  koel build tuesday.txt --grow -o tuesday.koel
  koel merge monday.koel tuesday.koel -o week.koel

Exit codes: 0 done, 2 error, 3 the union does not fit.")]
pub(crate) struct Args {
    /// Filters to merge, two or more
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Where to write the union; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,

    /// Keep the larger of two counts of a key instead of their sum
    #[arg(long)]
    max: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    output::refuse_terminal(&args.out)?;
    let _lock = filter_file::lock_output(&args.out);
    let how = if args.max { Merge::Max } else { Merge::Sum };
    let (first, others) = args.filters.split_first().expect("clap asks for two");
    let mut union = FilterFile::open(first)?.load()?;
    for path in others {
        let file = FilterFile::open(path)?;
        union.merge(&file.view()?, how).map_err(|error| refused(first, path, error))?;
    }
    output::write_filter(&args.out, &union)?;
    let report = if args.json {
        output::json(&json!({
            "keys": union.len(),
            "capacity": union.capacity(),
            "size_in_bytes": union.size_in_bytes(),
            "fpr_expected": union.false_positive_rate(),
        }))
    } else {
        output::table(&[
            ("keys", sizing::keys_and_room(&union)),
            ("size", bytes(union.size_in_bytes() as u64)),
            ("expected error rate", rate(union.false_positive_rate())),
        ])
    };
    output::report_on(&args.out, &report)?;
    Ok(Outcome::Done)
}

fn refused(first: &Path, path: &Path, error: MergeError) -> Failure {
    let (first, path) = (first.display(), path.to_owned());
    match error {
        MergeError::Incompatible { field: "growth" } => Failure::Usage(format!(
            "{} has grown and {first} cannot; `koel grow {first}` first",
            path.display()
        )),
        MergeError::Unsound(error) => Failure::Image { path, error },
        error => Failure::Merge { path, error },
    }
}
