//! `koel refute`: tells a filter which keys were not added to it.
//!
//! Lines that the filter reports get a correction each, all or none, and are not reported any more.
//! The filter cannot tell a false positive from a key that is in: refuting a key that is in hides
//! it. So if it reports more lines than chance explains, it refuses them all, unless it is forced
//! to. A few lines are refuted. `koel build --never` knows the list, and hides none of it.
//! Cost: the whole file is read, checked and written once. Memory: the filter.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::file::Editing;
use crate::filter::reported::{Names, Reported};
use crate::input::InputArgs;
use crate::output;
use crate::quantity::{bytes, counted, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel refute blocked.koel allowed.txt
  koel check blocked.koel seen.txt | grep -Fxvf list.txt | koel refute --force blocked.koel

A line that the filter reports although it was not added gets a correction of 8 bytes: from then on
it is absent for every reader of the filter. Other lines need none. Lines are read as those that the
filter was built from (koel build --help).

Refute only keys that were not added: the filter cannot tell a key that was added from a false
positive, and hides it. Adding the key takes its correction back. To build a filter whose list may
have some of the lines, use koel build --never: it hides no key of the list.

If the filter reports more of the lines than its false-positive rate explains, some of them were
added. Then nothing is changed. A few lines prove nothing: they are refuted, and a key among them is
hidden. --force refutes all lines that are reported, however many: lines that koel check printed,
say, and that are surely not in the list.

Keys that are added later may match the line of another key again: refute again after koel add.
With --parents, the parent domains of each line are refuted too, which koel check --url asks. Use it
only if none of them was added.

All lines are refuted, or none. There are at most as many corrections as slots (koel info).

Exit codes: 0 done, 2 error, 3 there are too many corrections.")]
pub(crate) struct Args {
    /// The filter file to change
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Refute the parent domains of each host too
    #[arg(long)]
    parents: bool,

    /// Refute however many of the lines are reported
    #[arg(long)]
    force: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut inputs = args.input.open()?;
    inputs.read_as_allowed();
    let editing = Editing::open(&args.filter);
    let mut editing = editing.map_err(|failure| args.input.or_swapped(failure))?;
    let filter = &mut editing.filter;
    let format = inputs.use_recipe_of(&args.filter, filter.application())?;
    let asked = if args.parents { Names::WithParents(format) } else { Names::Key };
    let most = filter.slots().saturating_add(filter.stashed_keys());
    let reported = Reported::by(filter, &inputs, asked, most)?;
    if !args.force {
        reported.check(&args.filter, filter)?;
    }
    let made = reported.refute(filter)?;
    let (corrections, size) = (filter.corrections(), filter.size_in_bytes());
    if made > 0 {
        editing.save()?;
    }
    let Reported { lines, skipped, .. } = &reported;
    let mut report = Report::default();
    report
        .add("lines", *lines, "lines", grouped(*lines))
        .add("refuted", made, "refuted", grouped(made))
        .add("corrections", corrections, "in the filter", counted(corrections, "correction"))
        .add("size_in_bytes", size, "size", bytes(size as u64))
        .add("skipped", skipped.json(), "skipped", skipped.sentence());
    output::report_change(&args.filter, made > 0, &report.text(args.json))
}
