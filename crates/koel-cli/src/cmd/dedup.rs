//! `koel dedup`: each line once, in the order of first appearance, in bounded memory.
//!
//! `sort -u` loses the order and `awk '!seen[$0]++'` keeps every line in memory; this keeps some 23 bits for each. The price is a known,
//! small number of lines wrongly dropped, which is printed at the end: how many more different lines than printed ones the filter
//! estimates to have seen. Nothing is ever printed twice.
//! Cost: one reading to count the lines unless `--keys` is given, then one hash and one insert per line; memory: the filter.
#![forbid(unsafe_code)]

use koel::{CuckooFilter, Full};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::input::InputArgs;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::{self, grouped};
use crate::sizing::ShapeArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lines go to standard output, the figures at the end to standard error: how many lines were read, printed
and dropped, and how many of them are expected to be dropped wrongly (a smaller --fpr means fewer).
Without --keys the lines are counted first: files are read twice, a pipe is copied to TMPDIR.

Examples:
  koel dedup huge.log > once.log
  zcat *.gz | koel dedup --keys 200M --fpr 1e-9 > once.txt")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Chance for a new line to be dropped: 1e-6 or 1/1000000
    #[arg(long, value_name = "P", default_value = "1e-6", value_parser = quantity::parse_rate)]
    fpr: f64,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Print the figures at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut inputs = args.input.open()?;
    let capacity = match args.shape.keys {
        Some(keys) => keys,
        None => inputs.count()?,
    };
    let mut filter = args.shape.build(capacity, args.fpr)?;
    let mut read = 0;
    let mut out = Lines::new();
    let whole = inputs.each("deduplicating", Stdout::Busy, |lines| {
        let mut new = vec![false; lines.len()];
        let added = filter.insert_unique_many(lines, &mut new);
        for (line, _) in lines.iter().zip(&new).filter(|(_, new)| **new) {
            out.line(line, inputs.terminator())?;
        }
        let done = new.iter().rposition(|&new| new).map_or(0, |last| last + 1);
        added.map_err(|full| too_small(full, read + done as u64, filter.len()))?;
        read += lines.len() as u64;
        Ok(())
    });
    out.finish()?;
    whole?;
    let report = if args.json { json_report(read, &filter) } else { text_report(read, &filter) };
    output::print_aside(&report)?;
    Ok(Outcome::Done)
}

fn too_small(full: Full, read: u64, printed: u64) -> Failure {
    let remedy = format!(
        "the first {} are done; give a --keys well above {}, or leave it out to have the lines counted",
        quantity::counted(read, "line"),
        printed
    );
    Failure::Full { full, remedy }
}

/// Different lines that were taken for earlier ones, as far as can be expected.
fn wrongly_dropped(filter: &CuckooFilter) -> f64 {
    (filter.distinct_estimate() - filter.len() as f64).max(0.0)
}

fn json_report(read: u64, filter: &CuckooFilter) -> String {
    output::json(&json!({
        "read": read,
        "printed": filter.len(),
        "dropped": read - filter.len(),
        "expected_wrongly_dropped": wrongly_dropped(filter),
    }))
}

fn text_report(read: u64, filter: &CuckooFilter) -> String {
    format!(
        "koel: {} read, {} printed, {} dropped; expected to be dropped wrongly: {}\n",
        quantity::counted(read, "line"),
        grouped(filter.len()),
        grouped(read - filter.len()),
        quantity::three_digits(wrongly_dropped(filter))
    )
}
