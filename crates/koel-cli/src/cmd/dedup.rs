//! `koel dedup`: each line once, in the order of first appearance, in a few bits for each.
//!
//! `sort -u` loses the order and `awk '!seen[$0]++'` keeps every line in memory; this keeps some 30 bits for each different one in a filter that grows with
//! them, or 23 in one built for `--keys`. It grows ahead of them (`room.rs`), which makes it two to three times as fast. The price is a known, small number of lines wrongly dropped, which is printed at the end. Nothing is ever printed twice.
//! Cost: one hash and one insert per line; memory: the filter. Below an error rate of about 1e-7 a filter cannot grow: then the lines are counted first.
#![forbid(unsafe_code)]

use koel::Full;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::input::InputArgs;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::{self, grouped};
use crate::room::Room;
use crate::sizing::ShapeArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lines go to standard output, the figures at the end to standard error: how many lines were read, printed
and dropped, and how many of them are expected to be dropped wrongly (a smaller --fpr means fewer).
Everything is read once. Without --keys the filter grows with the different lines, and keeps the error rate up to a
billion of them; --prefer fast takes 0.7 of the time and a sixth more memory then; with --keys it is smaller, and
twice as fast. Below an error rate of about 1e-7 a filter cannot grow: without --keys files are read twice then,
and a pipe is copied to TMPDIR.

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
    let mut out = Lines::answering(&inputs)?;
    let mut filter = match args.shape.keys {
        Some(keys) => args.shape.build(keys, args.fpr)?,
        None => args.shape.build_for(&mut inputs, args.fpr)?,
    };
    let (mut read, mut wrong, mut room) = (0, 0.0, Room::in_filter(&filter));
    let whole = inputs.each_until("deduplicating", Stdout::Busy, |lines, share| {
        room.make(&mut filter, lines.len() as u64, share);
        let mut new = vec![false; lines.len()];
        let before = filter.false_positive_rate();
        let added = filter.insert_unique_many(lines, &mut new);
        for (line, _) in lines.iter().zip(&new).filter(|(_, new)| **new) {
            out.line(line, inputs.terminator())?;
        }
        out.caught_up()?;
        let done = new.iter().rposition(|&new| new).map_or(0, |last| last + 1);
        added.map_err(|full| too_small(full, read + done as u64, filter.len()))?;
        read += lines.len() as u64;
        let printed = new.iter().filter(|&&new| new).count();
        wrong += wrongly_dropped(printed, [before, filter.false_positive_rate()]);
        Ok(false)
    });
    out.finish()?;
    whole?;
    let printed = filter.len();
    let report = if args.json {
        json_report(read, printed, wrong)
    } else {
        text_report(read, printed, wrong)
    };
    output::print_aside(&report)?;
    Ok(Outcome::Done)
}

fn too_small(full: Full, read: u64, printed: u64) -> Failure {
    let remedy = format!(
        "the first {} are done; give a --keys well above {}, or leave it out to let the filter grow",
        quantity::counted(read, "line"),
        printed
    );
    Failure::Full { full, remedy }
}

/// Different lines that were taken for earlier ones, to be expected beside so many printed ones, while the filter's error rate went from one to the other: of
/// lines that are new a share is dropped, and the others are printed.
fn wrongly_dropped(printed: usize, rates: [f64; 2]) -> f64 {
    let rate = f64::midpoint(rates[0], rates[1]);
    printed as f64 * rate / (1.0 - rate).max(f64::EPSILON)
}

fn json_report(read: u64, printed: u64, wrong: f64) -> String {
    output::json(&json!({
        "read": read,
        "printed": printed,
        "dropped": read - printed,
        "expected_wrongly_dropped": wrong,
    }))
}

fn text_report(read: u64, printed: u64, wrong: f64) -> String {
    format!(
        "koel: {} read, {} printed, {} dropped; expected to be dropped wrongly: {}\n",
        quantity::counted(read, "line"),
        grouped(printed),
        grouped(read - printed),
        quantity::three_digits(wrong)
    )
}
