//! `koel similar`: estimates how many keys two filters have in common, without the keys.
//!
//! Two compatible filters store equal keys as equal entries, so their overlap can be estimated from
//! the filters alone. Uses: near-duplicate lists, the reach of two campaigns, the gain of a merge.
//! Each figure has a standard error: two thirds of all true values lie within one of it, 95 %
//! within two. Cost: both filters are read once. Memory: none, because they stay mapped.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use koel::{Comparison, Estimate};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::output;
use crate::quantity::{counted, grouped, to_u64};

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
    let found = compare(&args.first, &args.second)?;
    let report = if args.json { json_report(&found) } else { text_report(&found) };
    output::print(&report)?;
    Ok(Outcome::Done)
}

/// Compares two filters after a check of every byte: damaged ones would give wrong figures.
pub(super) fn compare(first: &Path, second: &Path) -> Result<Comparison, Failure> {
    let files = [FilterFile::open(first)?, FilterFile::open(second)?];
    let views = [files[0].view()?, files[1].view()?];
    views[0].verify().map_err(|error| files[0].failure(error))?;
    views[1].verify().map_err(|error| files[1].failure(error))?;
    views[0].compare(&views[1]).map_err(|error| Failure::Merge { path: second.to_owned(), error })
}

/// Prints an estimate as "1,234 +- 5".
fn with_error(estimate: Estimate) -> String {
    format!("{} +- {}", rounded(estimate.value), rounded(estimate.standard_error))
}

/// Prints an estimate as "about 1,234 keys", with `noun` in place of "key".
pub(super) fn about(estimate: Estimate, noun: &str) -> String {
    format!("about {}", counted(whole(estimate.value), noun))
}

fn rounded(keys: f64) -> String {
    grouped(whole(keys))
}

fn whole(keys: f64) -> u64 {
    to_u64(keys.max(0.0).round())
}

/// An estimate as JSON.
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
        ("in both", with_error(found.common())),
        ("only in the first", with_error(found.only_first())),
        ("only in the second", with_error(found.only_second())),
        ("in either", with_error(found.union())),
        ("Jaccard similarity", format!("{:.5}", found.jaccard())),
    ])
}
