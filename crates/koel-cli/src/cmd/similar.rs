//! `koel similar`: how many keys two filters have in common, without the keys.
//!
//! Two filters that were built alike give equal keys equal entries, so their overlap can be estimated from the filters alone: for near-duplicate
//! lists, for the reach of two campaigns, for what a merge would bring. Each figure has its standard error: the truth is within one of it in two
//! cases of three, within two in nineteen of twenty. Cost: both filters are read once; memory: none, they stay mapped.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use koel::{Comparison, Estimate};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter_file::FilterFile;
use crate::output;
use crate::quantity::{grouped, to_u64};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Filters can be compared when both were built with --grow, or both with equal --keys, and with equal --fpr,
--prefer and --seed.
\"+-\" is the standard error: what keys that happen to share an entry can make of the figure.

Examples:
  koel similar monday.koel tuesday.koel
  koel similar --json a.koel b.koel")]
pub(crate) struct Args {
    /// A filter
    first: PathBuf,

    /// Another filter, built alike
    second: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let found = compare(&args.first, &args.second)?;
    let report = if args.json { json_report(&found) } else { text_report(&found) };
    output::print(&report)?;
    Ok(Outcome::Done)
}

/// Both filters side by side, after a check of every byte: a figure from damaged ones would be worth nothing.
pub(super) fn compare(first: &Path, second: &Path) -> Result<Comparison, Failure> {
    let files = [FilterFile::open(first)?, FilterFile::open(second)?];
    let [one, other] = [files[0].view()?, files[1].view()?];
    one.verify().map_err(|error| files[0].failure(error))?;
    other.verify().map_err(|error| files[1].failure(error))?;
    one.compare(&other).map_err(|error| Failure::Merge { path: second.to_owned(), error })
}

/// "1,234 +- 5".
pub(super) fn keys(estimate: Estimate) -> String {
    let [value, error] = [estimate.value, estimate.standard_error].map(|keys| grouped(whole(keys)));
    format!("{value} +- {error}")
}

fn whole(keys: f64) -> u64 {
    to_u64(keys.max(0.0).round())
}

pub(super) fn numbers(estimate: Estimate) -> Value {
    json!({ "value": estimate.value, "standard_error": estimate.standard_error })
}

fn json_report(found: &Comparison) -> String {
    output::json(&json!({
        "common": numbers(found.common()),
        "only_first": numbers(found.only_first()),
        "only_second": numbers(found.only_second()),
        "union": numbers(found.union()),
        "jaccard": numbers(found.jaccard()),
    }))
}

fn text_report(found: &Comparison) -> String {
    output::table(&[
        ("in both", keys(found.common())),
        ("only in the first", keys(found.only_first())),
        ("only in the second", keys(found.only_second())),
        ("in either", keys(found.union())),
        ("similarity", format!("{:.5} (common by either, Jaccard)", found.jaccard())),
    ])
}
