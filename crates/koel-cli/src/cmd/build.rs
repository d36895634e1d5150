//! `koel build`: keys in, a filter file out.
//!
//! Without `--keys` the lines of files are counted first, which costs one reading more, and is too large where lines repeat; the report says so. A pipe can be read
//! only once: it goes into a filter that grows, which takes half as many bits again. Cost: one hash and one insert per line; memory: the filter.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::{CuckooFilter, Full};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter_file;
use crate::input::{InputArgs, Inputs};
use crate::output;
use crate::progress::Stdout;
use crate::quantity::{self, bytes, grouped};
use crate::sizing::{self, ShapeArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every line is inserted, copies too, so that each can be removed again; --unique inserts a key once.
Without --keys the lines of files are counted first; a pipe is not, it goes into a filter that grows with its keys
(--grow) and keeps the error rate up to a billion different ones. Below an error rate of about 1e-7 a filter
cannot grow: then a pipe is copied to TMPDIR and counted.

Examples:
  koel build domains.txt -o domains.koel
  koel build *.gz --fpr 1e-4 --unique -o all.koel
  zcat huge.gz | koel build -o huge.koel                any number of lines
  zcat huge.gz | koel build --keys 500M -o huge.koel    smaller, but full after 500 million
  find / -print0 | koel build -0 -o paths.koel")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Where to write the filter; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,

    /// Share of absent keys that may look present: 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = quantity::parse_rate)]
    fpr: f64,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Let it grow when it is full; without --keys it starts small, for a thousand keys
    #[arg(long)]
    grow: bool,

    /// Insert each key once, however often it comes
    #[arg(long)]
    unique: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    output::refuse_terminal(&args.out)?;
    let mut inputs = args.input.open()?;
    inputs.refuse_output(&args.out)?;
    let _lock = filter_file::lock_output(&args.out);
    let mut filter = empty(args, &mut inputs)?;
    let mut lines = 0;
    inputs.each("building", Stdout::Silent, |keys| {
        sizing::insert(&mut filter, keys, args.unique).map_err(|full| too_small(full, &filter))?;
        lines += keys.len() as u64;
        Ok(())
    })?;
    output::write_filter(&args.out, &filter)?;
    let report = if args.json { json_report(&filter, lines) } else { text_report(args, &filter) };
    output::report_on(&args.out, &report)?;
    Ok(Outcome::Done)
}

/// The filter that the keys go into.
fn empty(args: &Args, inputs: &mut Inputs) -> Result<CuckooFilter, Failure> {
    match args.shape.keys {
        Some(keys) if args.grow => args.shape.build_growable(keys, args.fpr),
        Some(keys) => args.shape.build(keys, args.fpr),
        None if args.grow => args.shape.build_growing(args.fpr),
        None if inputs.has_stream() => args.shape.build_for(inputs, args.fpr),
        None => args.shape.build(inputs.count()?, args.fpr),
    }
}

fn too_small(full: Full, filter: &CuckooFilter) -> Failure {
    let remedy = match full {
        Full::Counters { .. } => {
            "nothing was written; give --unique, or a larger --keys".to_owned()
        }
        _ => format!(
            "nothing was written; {} went in, so give --grow, or a --keys well above {}",
            quantity::counted(filter.len(), "key"),
            sizing::distinct(filter)
        ),
    };
    Failure::Full { full, remedy }
}

fn json_report(filter: &CuckooFilter, lines: u64) -> String {
    output::json(&json!({
        "lines": lines,
        "keys": filter.len(),
        "distinct_estimate": sizing::distinct(filter),
        "capacity": filter.capacity(),
        "size_in_bytes": filter.size_in_bytes(),
        "bits_per_key": filter.bits_per_key(),
        "growable": filter.is_growable(),
        "fpr_requested": filter.requested_false_positive_rate(),
        "fpr_expected": filter.false_positive_rate(),
    }))
}

fn text_report(args: &Args, filter: &CuckooFilter) -> String {
    let mut rows = vec![
        ("keys", grouped(filter.len())),
        ("different keys", format!("{} (estimate)", grouped(sizing::distinct(filter)))),
        ("size", bytes(filter.size_in_bytes() as u64)),
        (
            "bits per key",
            format!(
                "{}, for {} different keys",
                sizing::bits_per_key(filter.bits_per_key(), filter.len(), filter.has_grown()),
                grouped(sizing::keys_of_size(filter))
            ),
        ),
        ("expected error rate", quantity::rate(filter.false_positive_rate())),
    ];
    if let Some(hint) = smaller(args, filter) {
        rows.push(("hint", hint));
    }
    output::table(&rows)
}

/// Advice where the filter is larger than it need be: because lines repeat so much, or because nobody said how many there are.
fn smaller(args: &Args, filter: &CuckooFilter) -> Option<String> {
    let distinct = sizing::distinct(filter);
    if args.grow || distinct == 0 || distinct as f64 > 0.9 * filter.capacity() as f64 {
        return None;
    }
    // Four standard errors above the estimate, so that the advice works.
    let error = (distinct as f64 * filter.false_positive_rate() / 2.0).sqrt();
    let enough = distinct + quantity::to_u64(4.0 * error) + 1;
    let plan = args.shape.plan(enough, args.fpr).ok()?;
    if plan.size_in_bytes as f64 > 0.9 * filter.size_in_bytes() as f64 {
        return None;
    }
    let smaller = bytes(plan.size_in_bytes as u64);
    if filter.is_growable() {
        return Some(format!("--keys {enough} would make it {smaller}; it would not grow"));
    }
    let unique = if args.unique { "" } else { " --unique" };
    let forgets = if args.unique { "" } else { ", without counts" };
    Some(format!("--keys {enough}{unique} would make it {smaller}{forgets}"))
}
