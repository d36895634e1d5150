//! `koel dedup`: prints each line once, in order of first appearance, in a few bits per line.
//!
//! `sort -u` loses the order, and `awk '!seen[$0]++'` keeps every line in memory. A filter keeps
//! about 36 bits per distinct line if it grows, or 23 if it is built for `--keys`. It grows ahead
//! of its input (`room.rs`), which makes it two to three times as fast.
//!
//! No line is printed twice. A few new lines are dropped as false positives; their expected number
//! is printed at the end. Below a rate of about 1e-7 a filter cannot grow, so the lines are counted
//! first. Cost: one hash and one insert per line. Memory: the filter.
//!
//! With `--window`, lines are forgotten after a time (`window.rs`, `seen.rs`). `line_time.rs` finds
//! the time in a line, and `state_file.rs` keeps what was seen across restarts.
#![forbid(unsafe_code)]

mod line_time;
mod seen;
mod state_file;
mod window;

use koel::{CuckooFilter, FullError};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::input::InputArgs;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::{self, grouped};
use crate::room::Room;
use crate::sizing::{self, ShapeArgs};
use window::{Others, WindowArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel dedup huge.log > once.log
  koel dedup --prefer small huge.log > once.log     a sixth less memory, 30 % more time
  zcat *.gz | koel dedup --keys 200M > once.txt     half the time, if the number of keys is known
  tail -F app.log | koel dedup --window 10m         what did not come within the last ten minutes
  koel dedup --window 1h --time-field 1 --field 3 app.log     by the time in each line

No line is printed twice. A few new lines are dropped wrongly; a smaller --fpr means fewer.
The report on standard error has the lines read, printed and dropped, and how many of those
were probably dropped wrongly.

Without --keys, the filter grows with the distinct lines and keeps its rate up to a billion of them.
It then prefers speed to size, since it is not saved; --prefer small reverses that.
A filter cannot grow if --fpr is below about 1e-7. Without --keys, files are then read twice,
and a pipe is copied to TMPDIR.

With --window, 4.5 MB are enough for a million distinct lines in a window; for more, the filter
grows to 36 bits for each. --keys limits it to so many lines, in 31 bits each; more of them evict
the oldest. The report is also printed at SIGUSR1. With --state FILE, a restart forgets nothing; if
koel is killed, lines of the last two seconds may be printed again.

With --secret, nobody who chooses the lines can make others disappear.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Chance that a new line is dropped wrongly, such as 1e-6
    #[arg(long, value_name = "P", default_value = "1e-6", value_parser = quantity::parse_rate)]
    #[arg(allow_negative_numbers = true)]
    fpr: f64,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    window: WindowArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if let Some(window) = args.window.window() {
        let Args { input, fpr, shape, json, .. } = args;
        let others = Others { input, shape, fpr: *fpr, json: *json };
        return window::run(&args.window, &others, window);
    }
    let mut inputs = args.input.open()?;
    let mut out = Lines::for_inputs(&inputs)?;
    let mut filter = match args.shape.keys {
        Some(keys) => args.shape.build(keys, args.fpr)?,
        None => args.shape.build_for(&mut inputs, args.fpr)?,
    };
    let (mut read, mut wrong, mut room) = (0, 0.0, Room::in_filter(&filter));
    let whole = inputs.each_line("deduplicating", Stdout::Busy, |group, share| {
        let lines = &group.lines;
        if let Some(header) = group.header {
            out.line(header, inputs.terminator())?;
        }
        room.make(&mut filter, lines.len() as u64, share);
        let mut new = vec![false; lines.len()];
        let before = filter.false_positive_rate();
        let added = filter.insert_unique_many(group.keys(), &mut new);
        for (line, _) in lines.iter().zip(&new).filter(|(_, new)| **new) {
            out.line(line, inputs.terminator())?;
        }
        out.end_group()?;
        let done = new.iter().rposition(|&new| new).map_or(0, |last| last + 1);
        added.map_err(|full| too_small(full, read + done as u64, filter.len()))?;
        read += lines.len() as u64;
        let printed = new.iter().filter(|&&new| new).count();
        wrong += sizing::wrongly_dropped(printed, [before, filter.false_positive_rate()]);
        Ok(false)
    });
    out.finish()?;
    whole?.warn();
    let report = if args.json {
        json_report(read, wrong, &filter)
    } else {
        text_report(read, wrong, &filter)
    };
    output::print_to_stderr(&report)?;
    Ok(Outcome::Done)
}

fn too_small(full: FullError, read: u64, printed: u64) -> Failure {
    let advice = match full {
        FullError::NoMemory => "free some memory",
        _ => "use a larger --keys, or leave it out to let the filter grow",
    };
    let remedy = format!("the first {} were processed; {advice}", quantity::counted(read, "line"));
    Failure::Full { full, keys: printed, remedy }
}

fn json_report(read: u64, wrong: f64, filter: &CuckooFilter) -> String {
    let printed = filter.len();
    output::json(&json!({
        "read": read,
        "printed": printed,
        "dropped": read - printed,
        "expected_wrongly_dropped": wrong,
        "warning": sizing::rate_warning(filter),
    }))
}

fn text_report(read: u64, wrong: f64, filter: &CuckooFilter) -> String {
    let printed = filter.len();
    let warning = sizing::rate_warning(filter);
    let warning = warning.map(|warning| format!("koel: warning: {warning}\n")).unwrap_or_default();
    format!(
        "koel: {} read, {} printed, {} dropped (about {} of them wrongly)\n{warning}",
        quantity::counted(read, "line"),
        grouped(printed),
        grouped(read - printed),
        quantity::three_digits(wrong)
    )
}
