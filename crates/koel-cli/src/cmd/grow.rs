//! `koel grow`: lets a filter file grow, makes room in it, or gives room back.
//!
//! The keys are not needed. Until it is full a filter that may grow is the one that it was; when it first grows, every fingerprint gets seven bits more. Cost: the whole file is
//! read, checked and written once; memory: the filter, and with `--shrink` the smaller one beside it.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::CuckooFilter;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter_file::Editing;
use crate::output;
use crate::quantity::{self, bytes, grouped, rate};
use crate::sizing;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
From now on koel add makes the filter larger when it is full. The error rate stays below 1.35 times the one asked
for, or, where the filter was built for some hundred keys, the one that it has when it is full; with
koel build --grow, which has wider fingerprints from the start, it is kept.

Examples:
  koel grow domains.koel                 any number of keys from now on
  koel grow domains.koel --keys 10M      and room for ten million at once
  koel grow domains.koel --shrink        after many were removed")]
pub(crate) struct Args {
    /// The filter to change
    filter: PathBuf,

    /// Make room at once for so many different keys in all
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    keys: Option<u64>,

    /// Give back the room that growth made and no key needs
    #[arg(long, conflicts_with = "keys")]
    shrink: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut editing = Editing::open(&args.filter)?;
    let before = editing.filter.size_in_bytes();
    change(args, &mut editing.filter)?;
    let report = if args.json {
        json_report(&editing.filter, before)
    } else {
        text_report(&editing.filter, before)
    };
    editing.save()?;
    output::report_change(&args.filter, true, &report)?;
    Ok(Outcome::Done)
}

fn change(args: &Args, filter: &mut CuckooFilter) -> Result<(), Failure> {
    let name = args.filter.display();
    filter
        .make_growable()
        .map_err(|_| Failure::Usage(format!("{name} is unchanged; {}", sizing::CANNOT_GROW)))?;
    if args.shrink {
        filter.shrink_to_fit();
    }
    if let Some(keys) = args.keys {
        let additional = keys.saturating_sub(sizing::distinct(filter));
        filter.reserve(additional).map_err(|_| {
            Failure::Usage(format!(
                "{name} is unchanged: there is no room for {} keys on this machine; ask for fewer",
                grouped(keys)
            ))
        })?;
    }
    Ok(())
}

fn json_report(filter: &CuckooFilter, before: usize) -> String {
    output::json(&json!({
        "keys": filter.len(),
        "size_in_bytes": filter.size_in_bytes(),
        "size_in_bytes_before": before,
        "load_factor": filter.load_factor(),
        "fpr_requested": filter.requested_false_positive_rate(),
        "fpr_expected": filter.false_positive_rate(),
    }))
}

fn text_report(filter: &CuckooFilter, before: usize) -> String {
    let now = bytes(filter.size_in_bytes() as u64);
    output::table(&[
        ("keys", sizing::keys_and_room(filter)),
        ("size", format!("{now}, before {}", bytes(before as u64))),
        ("load", format!("{:.4}", filter.load_factor())),
        ("expected error rate", rate(filter.false_positive_rate())),
        ("grows", "when it is full".to_owned()),
    ])
}
