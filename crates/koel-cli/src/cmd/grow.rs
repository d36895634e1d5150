//! `koel grow`: makes a filter file growable, reserves room in it, or shrinks it.
//!
//! The original keys are not needed. The table stays the same until the filter is full. When it
//! first grows, every fingerprint becomes seven bits wider. Cost: the whole file is read, checked
//! and written once. Memory: the filter, and with `--shrink` also the smaller one.

use std::path::PathBuf;

use koel::CuckooFilter;

use crate::failure::{Failure, Outcome};
use crate::filter::file::Editing;
use crate::filter::sizing;
use crate::output;
use crate::quantity::{self, bytes, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel grow domains.koel                 make it growable: koel add enlarges it when it is full
  koel grow domains.koel --keys 10M      also reserve room for ten million keys now
  koel grow domains.koel --shrink        free unused room after many removals

The original keys are not needed.
As the filter grows, its false-positive rate stays below 1.35 times the requested rate.
A filter built with koel build --grow, without --keys, has wider fingerprints and keeps the
requested rate up to a billion distinct keys.")]
pub(crate) struct Args {
    /// The filter file to change
    filter: PathBuf,

    /// Reserve room for this many distinct keys in total
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    #[arg(allow_negative_numbers = true)]
    keys: Option<u64>,

    /// Free the unused room of a filter that has grown
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
    let report = report(&editing.filter, before);
    editing.save()?;
    output::report_change(&args.filter, true, &report.text(args.json))
}

fn change(args: &Args, filter: &mut CuckooFilter) -> Result<(), Failure> {
    let name = args.filter.display();
    filter
        .make_growable()
        .map_err(|_| Failure::Usage(format!("{name} is unchanged: {}", sizing::CANNOT_GROW)))?;
    if args.shrink {
        filter.shrink_to_fit();
    }
    if let Some(keys) = args.keys {
        let additional = keys.saturating_sub(sizing::distinct(filter));
        filter.reserve(additional).map_err(|_| {
            Failure::Usage(format!(
                "cannot reserve room for {} keys on this machine; {name} is unchanged, use a \
                 smaller --keys",
                grouped(keys)
            ))
        })?;
    }
    Ok(())
}

fn report(filter: &CuckooFilter, before: usize) -> Report {
    let (size, load) = (filter.size_in_bytes(), filter.load_factor());
    let sizes = format!("{} ({} before)", bytes(size as u64), bytes(before as u64));
    let mut report = Report::default();
    report
        .add("keys", filter.len(), "keys", sizing::keys_and_capacity(filter))
        .add("size_in_bytes", size, "size", sizes)
        .json("size_in_bytes_before", before)
        .add("load_factor", load, "load factor", format!("{load:.4}"));
    sizing::add_rates(&mut report, filter);
    report.row("growable", "yes").warning(sizing::rate_warning(filter));
    report
}
