//! `koel diff`: shows what changed between two snapshots of a filter.
//!
//! It tells how many keys were added and removed between Monday's file and Tuesday's. Copies count:
//! a key that was inserted five more times is five keys added, none of them new. So do corrections
//! (`koel refute`), which change answers as keys do. The exit codes are those of diff: 0 no
//! difference, 1 some, 2 error. Cost: as `koel similar`. With `--patch`, it writes what has changed
//! to a file, for `koel patch`.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::compare::{self, about, numbers};
use crate::output;
use crate::quantity::{bytes, grouped, unless_zero};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel diff monday.koel tuesday.koel
  koel diff old.koel new.koel > /dev/null && echo no change
  koel build tuesday.txt --like monday.koel -o tuesday.koel
  koel diff monday.koel tuesday.koel --patch tuesday.patch

The filters can be two states of one file, or two filters with the same build options:
both with --grow, or both with the same --keys, and always the same --fpr, --prefer and --seed.

\"added\" and \"removed\" count copies, and are exact unless different keys share an entry.
The numbers of new, removed and kept keys are estimates; --json has their standard errors.
Corrections that only one filter has are a difference too (koel refute).

With --patch, the changes are written to a file of some 2 bytes each. `koel patch` makes the newer
filter from the older one and that file. Publish the filter that it makes, not NEW: then everybody
has the same bytes.

Exit codes: 0 no difference, 1 some difference, 2 error; with --patch 0 if it was written.")]
pub(crate) struct Args {
    /// The older filter file
    old: PathBuf,

    /// The newer filter file
    new: PathBuf,

    /// Write a patch to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let patch = args.patch.as_ref();
    let patch = patch.map(|path| compare::write_patch(path, &args.old, &args.new)).transpose()?;
    let found = compare::compare(&args.old, &args.new)?;
    let (removed, added) = (found.surplus_first(), found.surplus_second());
    let (dropped, made) = (found.corrections_first(), found.corrections_second());
    let (old, new) = (found.only_first(), found.only_second());
    let size = patch.map(|patch| patch.len());
    let mut report = Report::default();
    report
        .add("added", added, "added", format!("{} ({})", grouped(added), about(new, "new key")))
        .add(
            "removed",
            removed,
            "removed",
            format!("{} ({} gone)", grouped(removed), about(old, "key")),
        )
        .json("new_keys", numbers(new))
        .json("removed_keys", numbers(old))
        .add("kept_keys", numbers(found.common()), "kept", about(found.common(), "key"))
        .add("corrections_added", made, "corrections added", unless_zero(made))
        .add("corrections_removed", dropped, "corrections removed", unless_zero(dropped))
        .add("patch_bytes", size, "patch", size.map_or(String::new(), |it| bytes(it as u64)));
    let report = report.text(args.json);
    match &args.patch {
        Some(path) => output::report_on(path, &report),
        // Like diff: exit code 1 if there is a difference.
        None => output::print(&report).map(|()| Outcome::some_if(!found.shows_change())),
    }
}
