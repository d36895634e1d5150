//! `koel diff`: shows what changed between two snapshots of a filter.
//!
//! It tells how many keys were added and removed between Monday's file and Tuesday's. Copies count:
//! a key that was inserted five more times is five keys added, none of them new. The exit codes are
//! those of diff: 0 no difference, 1 some, 2 error. Cost: as `koel similar`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use serde_json::json;

use crate::cmd::similar;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel diff monday.koel tuesday.koel
  koel diff old.koel new.koel > /dev/null && echo no change

The filters can be two states of one file, or two filters with the same build options:
both with --grow, or both with the same --keys, and always the same --fpr, --prefer and --seed.

\"added\" and \"removed\" count copies, and are exact unless different keys share an entry.
The numbers of new, removed and kept keys are estimates; --json has their standard errors.

Exit codes: 0 no difference, 1 some difference, 2 error.")]
pub(crate) struct Args {
    /// The older filter file
    old: PathBuf,

    /// The newer filter file
    new: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let found = similar::compare(&args.old, &args.new)?;
    let (removed, added) = (found.surplus_first(), found.surplus_second());
    let (old, new) = (found.only_first(), found.only_second());
    let report = if args.json {
        output::json(&json!({
            "added": added,
            "removed": removed,
            "new_keys": similar::numbers(new),
            "removed_keys": similar::numbers(old),
            "kept_keys": similar::numbers(found.common()),
        }))
    } else {
        output::table(&[
            ("added", format!("{} ({})", grouped(added), similar::about(new, "new key"))),
            ("removed", format!("{} ({} gone)", grouped(removed), similar::about(old, "key"))),
            ("kept", similar::about(found.common(), "key")),
        ])
    };
    output::print(&report)?;
    // Like diff: exit code 1 if there is a difference.
    Ok(Outcome::some_if(added == 0 && removed == 0))
}
