//! `koel similar`: estimates how many keys two filters have in common, without the keys.
//!
//! Two compatible filters store equal keys as equal entries, so their overlap can be estimated from
//! the filters alone. Uses: near-duplicate lists, the reach of two campaigns, the gain of a merge.
//! Each figure has a standard error: two thirds of all true values lie within one of it, 95 %
//! within two. Cost: both filters are read once. Memory: none, because they stay mapped.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::{Comparison, Estimate};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter::compare::{self, numbers, whole};
use crate::output;
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel similar monday.koel tuesday.koel
  koel similar --json a.koel b.koel

Build both filters with --grow, or build both with the same --keys.
--fpr, --prefer and --seed must be the same, too.
The number after +- is the standard error: different keys can share an entry in a filter.")]
pub(crate) struct Args {
    /// The first filter file
    first: PathBuf,

    /// The second filter file
    second: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let found = compare::compare(&args.first, &args.second)?;
    let report = if args.json { json_report(&found) } else { text_report(&found) };
    output::print(&report)?;
    Ok(Outcome::Done)
}

/// Prints an estimate as "1,234 +- 5".
fn with_error(estimate: Estimate) -> String {
    format!("{} +- {}", rounded(estimate.value), rounded(estimate.standard_error))
}

fn rounded(keys: f64) -> String {
    grouped(whole(keys))
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
        ("in both", with_error(found.common())),
        ("only in the first", with_error(found.only_first())),
        ("only in the second", with_error(found.only_second())),
        ("in either", with_error(found.union())),
        ("Jaccard similarity", format!("{:.5}", found.jaccard())),
    ])
}
