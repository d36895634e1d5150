//! `koel dedup`: each line once, in the order of first appearance, in bounded memory.
//!
//! `sort -u` loses the order and `awk '!seen[$0]++'` keeps every line in memory; this keeps some 23 bits for each. The price is a known,
//! small number of lines wrongly dropped, which is printed at the end: with p the filter's error rate when a line comes, each line
//! judged new stands for p/(1-p) new lines judged old (`sizing::Tally`). Nothing is ever printed twice.
//! Cost: one reading to count the lines unless `--keys` is given, then one hash and one insert per line; memory: the filter.
#![forbid(unsafe_code)]

use koel::Full;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::input::InputArgs;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::{self, grouped};
use crate::sizing::{ShapeArgs, Tally};

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
    let mut tally = Tally::default();
    let mut out = Lines::new();
    let whole = inputs.each("deduplicating", Stdout::Busy, |line| {
        if tally.insert(&mut filter, line, true).map_err(|full| too_small(full, &tally))? {
            out.line(line, inputs.terminator())?;
        }
        Ok(())
    });
    out.finish()?;
    whole?;
    let report = if args.json { json_report(&tally) } else { text_report(&tally) };
    output::print_aside(&report)?;
    Ok(Outcome::Done)
}

fn too_small(full: Full, tally: &Tally) -> Failure {
    let remedy = format!(
        "the first {} are done; give a --keys well above {}, or leave it out to have the lines counted",
        quantity::counted(tally.keys, "line"),
        tally.distinct()
    );
    Failure::Full { full, remedy }
}

fn json_report(tally: &Tally) -> String {
    output::json(&json!({
        "read": tally.keys,
        "printed": tally.judged_new,
        "dropped": tally.keys - tally.judged_new,
        "expected_wrongly_dropped": tally.expected_mistaken,
    }))
}

fn text_report(tally: &Tally) -> String {
    format!(
        "koel: {} read, {} printed, {} dropped; expected to be dropped wrongly: {}\n",
        quantity::counted(tally.keys, "line"),
        grouped(tally.judged_new),
        grouped(tally.keys - tally.judged_new),
        quantity::three_digits(tally.expected_mistaken)
    )
}
