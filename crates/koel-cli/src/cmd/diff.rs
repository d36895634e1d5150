//! `koel diff`: what changed between two snapshots of a filter.
//!
//! For a filter that is kept up to date: how many keys came and went between Monday's file and Tuesday's. Copies are counted too: a key that was
//! inserted five more times is five keys added, none of them new. Exit codes are those of diff: 0 no difference, 1 some, 2 error. Cost: as `koel similar`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use serde_json::json;

use crate::cmd::similar;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The filters must have been built alike, as two states of one file are: with --grow, or with equal --keys, and with
equal --fpr, --prefer and --seed.
\"+-\" is the standard error of an estimate. \"Added\" and \"removed\" count copies, and are exact
but for keys that share an entry.

Examples:
  koel diff monday.koel tuesday.koel
  koel diff old.koel new.koel >/dev/null && echo nothing new

Exit codes: 0 no difference, 1 some, 2 error.")]
pub(crate) struct Args {
    /// The earlier filter
    old: PathBuf,

    /// The later filter
    new: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let found = similar::compare(&args.old, &args.new)?;
    let (removed, added) = (found.surplus_first(), found.surplus_second());
    let (gone, fresh) = (found.only_first(), found.only_second());
    let report = if args.json {
        output::json(&json!({
            "added": added,
            "removed": removed,
            "new_keys": similar::numbers(fresh),
            "gone_keys": similar::numbers(gone),
            "kept_keys": similar::numbers(found.common()),
        }))
    } else {
        output::table(&[
            ("added", format!("{}, {} of them new keys", grouped(added), similar::keys(fresh))),
            ("removed", format!("{}, {} keys are gone", grouped(removed), similar::keys(gone))),
            ("kept", format!("{} different keys", similar::keys(found.common()))),
        ])
    };
    output::print(&report)?;
    // As diff does: 1 where there is a difference.
    Ok(Outcome::some_if(added == 0 && removed == 0))
}
