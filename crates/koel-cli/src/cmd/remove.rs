//! `koel remove`: removes keys from a filter file.
//!
//! Each line removes one copy of its key. Removing a key that was never added can remove another
//! key, at the false-positive rate: the filter cannot tell the two apart. The help says so.
//! Cost: the whole file is read, checked and written once. Memory: the filter.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::file::Editing;
use crate::input::InputArgs;
use crate::output;
use crate::quantity::grouped;
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel remove domains.koel expired.txt
  echo example.com | koel remove domains.koel

Each line removes one copy of its key.
Remove only keys that were added. At the filter's false-positive rate, a key that was never added
looks like another key, and removes that one.
In a filter that has grown, early keys are stored with fewer bits. After their removal some are
still found, at a rate that koel info states. To remove them again would remove other keys.

Exit codes: 0 all keys were found, 1 some were not (the others are removed), 2 error.")]
pub(crate) struct Args {
    /// The filter file to change
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut inputs = args.input.open()?;
    let editing = Editing::open(&args.filter);
    let mut editing = editing.map_err(|failure| args.input.or_swapped(failure))?;
    inputs.use_recipe_of(&args.filter, editing.filter.application())?;
    let mut lines: u64 = 0;
    let before = editing.filter.len();
    let mut found = Vec::new();
    let skipped = inputs.each("removing", |keys| {
        found.resize(keys.len(), false);
        editing.filter.remove_many(keys, &mut found);
        lines += keys.len() as u64;
        Ok(())
    })?;
    let keys = editing.filter.len();
    let removed = before - keys;
    let missing = lines - removed;
    if removed > 0 {
        editing.save()?;
    }
    let mut report = Report::default();
    report
        .add("removed", removed, "removed", grouped(removed))
        .add("not_found", missing, "not found", grouped(missing))
        .add("keys", keys, "keys", format!("{} left", grouped(keys)))
        .add("skipped", skipped.json(), "skipped", skipped.sentence());
    output::report_change(&args.filter, removed > 0, &report.text(args.json))?;
    Ok(Outcome::some_if(missing == 0))
}
