//! `koel dedup`: prints each line once, in order of first appearance, in a few bits per line.
//!
//! `sort -u` loses the order, and `awk '!seen[$0]++'` keeps every line in memory. A filter keeps
//! some bits per distinct line, fewer if it is built for `--keys`. It grows ahead of its input
//! (`room.rs`), which makes it faster.
//!
//! No line is printed twice. A few new lines are dropped as false positives; their expected number
//! is printed at the end. At the lowest rates a filter cannot grow, so the lines of files
//! are counted first, and pipes need `--keys`. Cost: one hash and one insert per line. Memory: the
//! filter.
//!
//! With `--window`, lines are forgotten after a time (`window.rs`, `seen.rs`). `line_time.rs` finds
//! the time in a line, and `state_file.rs` keeps what was seen across restarts.

mod line_time;
mod seen;
mod signals;
mod state_file;
mod window;

use koel::{CuckooFilter, FullError};

use crate::failure::{Failure, Outcome};
use crate::filter::room::Room;
use crate::filter::sizing::{self, ShapeArgs};
use crate::input::InputArgs;
use crate::lists::keys::Group;
use crate::output::{self, Lines};
use crate::quantity;
use signals::{Run, Taken, Totals, lock};
use window::WindowArgs;

/// The default of `--fpr`.
const FPR: f64 = 1e-6;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel dedup huge.log > once.log
  koel dedup --prefer small huge.log > once.log     less memory, more time
  zcat *.gz | koel dedup --keys 200M > once.txt     less memory and time, for a known number of keys
  tail -F app.log | koel dedup --window 10m         drop what came within the last ten minutes
  koel dedup --window 1h --time-field 1 --field 3 app.log     by the time in each line

No line is printed twice. A few new lines are dropped wrongly; a smaller --fpr means fewer.
The report on standard error has the lines read, printed and dropped, and how many of those
were probably dropped wrongly. It is also printed at SIGUSR1 and Ctrl-C.

Without --keys, the filter grows with the distinct lines and keeps its rate up to a billion of them.
It then prefers speed to size, since it is not saved; --prefer small reverses that.
If --fpr is too low for a filter that grows, files are read twice without --keys, and a pipe is
refused.

With --window, the filter has room for a million distinct lines in a window at first, and grows for
more. --keys limits it to that many lines, in less memory; more lines evict the oldest. With
--state FILE, a restart forgets nothing; if koel is killed, lines of the last two seconds may be
printed again.

--time-field and --time-key read RFC 3339 (2026-10-25T02:10:00Z, also with a space, or without T and
Z), dates, the common log format (25/Oct/2026:02:10:00 +0100), syslog (Oct 25 02:10:00), ctime,
mail dates, and Unix times in s, ms, us or ns. A time may go on in the next fields. Without an
offset, or a zone such as GMT or EST, it is UTC. A zone such as CEST is not read as a time, nor are
digits that are no time of day. A line whose time is more than --max-jump after all before it is
printed, but does not set the time unless the next line agrees. A line that is older than the window
is printed too.

With --secret, an adversary who chooses lines cannot make other lines disappear.

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
    let mut inputs = args.input.open_first()?;
    if let Some(window) = args.window.window {
        return window::run(args, inputs, window);
    }
    if args.shape.has_secret() {
        inputs.refuse_secrets()?;
    }
    let out = Lines::for_inputs(&inputs)?;
    let filter = match args.shape.keys {
        Some(keys) => args.shape.build(keys, args.fpr)?,
        None => args.shape.build_for(&mut inputs, args.fpr)?,
    };
    let room = Room::in_filter(&filter);
    let run = Run::of(Plain { filter, room, read: 0, printed: 0, wrong: 0.0, warning: None });
    signals::handle(&run, args.json, |_| {})?;
    signals::print_new(&inputs, out, &run, true)??.warn();
    output::print_to_stderr(&lock(&run).seen.report(args.json))?;
    Ok(Outcome::Done)
}

/// A filter that keeps every line, and what was read and printed.
struct Plain {
    filter: CuckooFilter,
    room: Room,
    read: u64,
    printed: u64,
    wrong: f64,
    warning: Option<String>,
}

impl Plain {
    fn too_small(&self, full: FullError, new: &[bool]) -> Failure {
        let done = new.iter().rposition(|&new| new).map_or(0, |last| last + 1);
        let read = quantity::counted(self.read + done as u64, "line");
        let advice = match full {
            FullError::NoMemory => "free some memory",
            _ => "use a larger --keys, or leave it out to let the filter grow",
        };
        let remedy = format!("the first {read} were processed; {advice}");
        Failure::Full { full, keys: self.filter.len(), remedy }
    }
}

impl Totals for Plain {
    fn take(&mut self, group: &Group<'_>, share: Option<f64>) -> Taken {
        self.room.make(&mut self.filter, group.lines.len() as u64, share);
        let mut new = vec![false; group.lines.len()];
        let before = self.filter.false_positive_rate();
        if let Err(full) = self.filter.insert_unique_many(group.keys(), &mut new) {
            let failure = self.too_small(full, &new);
            return (new, Err(failure));
        }
        let printed = new.iter().filter(|&&new| new).count();
        self.read += new.len() as u64;
        self.printed += printed as u64;
        self.wrong += sizing::wrongly_dropped(printed, [before, self.filter.false_positive_rate()]);
        self.warning = sizing::rate_warning(&self.filter);
        (new, Ok(()))
    }

    fn report(&mut self, as_json: bool) -> String {
        let Self { read, printed, wrong, ref warning, .. } = *self;
        let mut report = signals::totals(read, printed, wrong);
        if as_json {
            return report.warning(warning.clone()).text(true);
        }
        let warning = warning.as_ref().map(|it| format!("koel: warning: {it}\n"));
        signals::totals_line(read, printed, wrong) + &warning.unwrap_or_default()
    }
}
