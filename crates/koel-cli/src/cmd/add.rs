//! `koel add`: adds keys to a filter file, all or none.
//!
//! The changed filter replaces the file only after the last key was inserted. Cost: the whole file
//! is read, checked and written once, so add many keys at a time. Memory: the filter.

use std::path::PathBuf;

use koel::{CuckooFilter, FullError};

use crate::failure::{Failure, Outcome};
use crate::filter::file::Editing;
use crate::filter::room::Room;
use crate::filter::sizing;
use crate::input::InputArgs;
use crate::lists::skipped::Skipped;
use crate::output;
use crate::progress::Stdout;
use crate::quantity::grouped;
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel add domains.koel new.txt
  echo example.com | koel add domains.koel

A growable filter takes more keys than it was built for (see koel grow).
If a fixed filter becomes full, the file stays unchanged.

A repeated line is inserted every time, so that each copy can be removed again.
With --unique, a key is inserted only if it is not in the filter yet.

Exit codes: 0 done, 2 error, 3 the filter is full.")]
pub(crate) struct Args {
    /// The filter file to change
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Insert a key only if it is not in the filter yet
    #[arg(long)]
    unique: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut inputs = args.input.open()?;
    let editing = Editing::open(&args.filter);
    let mut editing = editing.map_err(|failure| args.input.or_swapped(failure))?;
    inputs.use_recipe_of(&args.filter, editing.filter.application())?;
    let before = editing.filter.len();
    let mut room = Room::in_filter(&editing.filter);
    let skipped = inputs.each_line("adding", Stdout::Silent, |group, share| {
        let keys = group.keys();
        if share.is_some() && editing.filter.has_grown() {
            room.make(&mut editing.filter, keys.len() as u64, share);
        }
        sizing::insert(&mut editing.filter, keys, args.unique)
            .map_err(|full| too_small(args, full, &editing.filter))?;
        Ok(false)
    })?;
    let added = editing.filter.len() - before;
    let mut report = report(&editing.filter, added, &skipped);
    let has_corrections = added > 0 && editing.filter.corrections() > 0;
    let hint = "new keys may match lines that were refuted: refute those again (koel refute)";
    report.row("hint", if has_corrections { hint } else { "" });
    if added > 0 {
        editing.save()?;
    }
    output::report_change(&args.filter, added > 0, &report.text(args.json))
}

fn too_small(args: &Args, full: FullError, filter: &CuckooFilter) -> Failure {
    let name = args.filter.display();
    let remedy = if full == FullError::NoMemory {
        format!("{name} is unchanged; free some memory")
    } else if filter.growth_limit().is_some() {
        format!("{name} is unchanged; make it growable with `koel grow {name}`")
    } else {
        format!("{name} is unchanged: {}", sizing::CANNOT_GROW)
    };
    Failure::Full { full, keys: filter.len(), remedy }
}

fn report(filter: &CuckooFilter, added: u64, skipped: &Skipped) -> Report {
    let mut report = Report::default();
    report
        .add("added", added, "added", grouped(added))
        .add("keys", filter.len(), "keys", sizing::keys_and_capacity(filter))
        .json("capacity", filter.capacity());
    sizing::add_rates(&mut report, filter);
    report.add("skipped", skipped.json(), "skipped", skipped.sentence());
    report.warning(sizing::rate_warning(filter));
    report
}
