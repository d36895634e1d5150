//! `koel build`: builds a filter file from keys.
//!
//! Without `--keys`, the lines of files are counted first, which reads them once more. If lines
//! repeat, the filter is then larger than needed, and the report says so. A pipe can be read only
//! once: its keys go into a growable filter, which takes about 1.5 times the bits per key.
//!
//! Cost: one hash and one insert per line. Memory: the filter.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::{CuckooFilter, FullError};
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
Examples:
  koel build domains.txt -o domains.koel
  koel build *.gz --fpr 1e-4 --unique -o all.koel
  zcat huge.gz | koel build -o huge.koel                any number of keys
  zcat huge.gz | koel build --keys 500M -o huge.koel    smaller, but full after 500 million keys
  find / -print0 | koel build -0 -o paths.koel
  koel build --format hosts blocked.txt -o blocked.koel             a hosts file, or URLs
  koel build --csv --field 3 --ignore-case users.csv -o mail.koel   a column

Without --keys, koel counts the lines of files before it builds the filter.
A pipe is not counted: its keys go into a growable filter, as with --grow.
Without --keys, a growable filter keeps its false-positive rate up to a billion distinct keys.
A filter cannot grow if --fpr is below about 1e-7. A pipe is then copied to TMPDIR and counted.

--ignore-case, --trim and --keep-cr are stored in the filter and hold for all later inputs.

A repeated line is inserted every time, so that each copy can be removed again.
With --unique, each key is inserted only once.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Where to write the filter; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,

    /// False-positive rate, such as 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = quantity::parse_rate)]
    fpr: f64,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Make the filter growable; without --keys it starts with room for 1,000
    #[arg(long)]
    grow: bool,

    /// Insert each key only once, however often it is repeated
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

/// The empty filter for the keys.
fn empty(args: &Args, inputs: &mut Inputs) -> Result<CuckooFilter, Failure> {
    let shape = args.shape.for_lines(inputs.line_options());
    match shape.keys {
        Some(keys) if args.grow => shape.build_growable(keys, args.fpr),
        Some(keys) => shape.build(keys, args.fpr),
        None if args.grow => shape.build_unbounded(args.fpr),
        None if inputs.has_stream() => shape.build_for(inputs, args.fpr),
        None => shape.build(inputs.count()?, args.fpr),
    }
}

fn too_small(full: FullError, filter: &CuckooFilter) -> Failure {
    let remedy = match full {
        FullError::Counters { .. } => "nothing was written; use --unique or a larger --keys",
        FullError::NoMemory => "nothing was written; free some memory",
        _ => "nothing was written; use --grow or a larger --keys",
    };
    Failure::Full { full, keys: filter.len(), remedy: remedy.to_owned() }
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
        ("distinct keys", format!("about {}", grouped(sizing::distinct(filter)))),
        ("size", bytes(filter.size_in_bytes() as u64)),
        (
            "bits per key",
            format!(
                "{} for {} distinct keys",
                sizing::bits_per_key(filter.bits_per_key(), filter.len(), filter.has_grown()),
                grouped(sizing::keys_of_size(filter))
            ),
        ),
        (
            "false-positive rate",
            sizing::rates(filter.false_positive_rate(), filter.requested_false_positive_rate()),
        ),
    ];
    if let Some(hint) = size_hint(args, filter) {
        rows.push(("hint", hint));
    }
    output::table(&rows)
}

/// A hint if the filter is larger than needed: lines repeat, or the number of keys was unknown.
fn size_hint(args: &Args, filter: &CuckooFilter) -> Option<String> {
    let distinct = sizing::distinct(filter);
    if args.grow || distinct == 0 || distinct as f64 > 0.9 * filter.capacity() as f64 {
        return None;
    }
    // Four standard errors above the estimate, so that all keys fit.
    let error = (distinct as f64 * filter.false_positive_rate() / 2.0).sqrt();
    let enough = distinct + quantity::to_u64(4.0 * error) + 1;
    let plan = args.shape.plan(enough, args.fpr).ok()?;
    if plan.size_in_bytes as f64 > 0.9 * filter.size_in_bytes() as f64 {
        return None;
    }
    let smaller = bytes(plan.size_in_bytes as u64);
    if filter.is_growable() {
        return Some(format!("--keys {enough} would take {smaller}, but could not grow"));
    }
    let unique = if args.unique { "" } else { " --unique" };
    let without = if args.unique { "" } else { ", but would not count copies" };
    Some(format!("--keys {enough}{unique} would take {smaller}{without}"))
}
