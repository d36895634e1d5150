//! `koel remove`: takes keys out of a filter file.
//!
//! Each line takes out one copy of its key. A filter cannot tell a key that was never put in from one that looks the same, so removing
//! strangers may take out a member, at the error rate; the help says so. Cost: the whole file is read, checked and written once;
//! memory: the filter.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter_file::Editing;
use crate::input::InputArgs;
use crate::output;
use crate::progress::Stdout;
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line takes out one copy of its key. Remove only what was put in: a key that never was may look like
another one (at the filter's error rate) and take that one out.

Examples:
  koel remove domains.koel expired.txt
  echo example.com | koel remove domains.koel

Exit codes: 0 all were there, 1 some were not (the others are removed), 2 error.")]
pub(crate) struct Args {
    /// The filter to change
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let inputs = args.input.open()?;
    let mut editing = Editing::open(&args.filter)?;
    let mut offered: u64 = 0;
    let before = editing.filter.len();
    let mut taken = Vec::new();
    inputs.each("removing", Stdout::Silent, |keys| {
        taken.resize(keys.len(), false);
        editing.filter.remove_many(keys, &mut taken);
        offered += keys.len() as u64;
        Ok(())
    })?;
    let keys = editing.filter.len();
    let removed = before - keys;
    let missing = offered - removed;
    if removed > 0 {
        editing.save()?;
    }
    let report = if args.json {
        output::json(&json!({ "removed": removed, "not_there": missing, "keys": keys }))
    } else {
        output::table(&[
            ("removed", grouped(removed)),
            ("not there", grouped(missing)),
            ("keys", format!("{} left", grouped(keys))),
        ])
    };
    output::report_change(&args.filter, removed > 0, &report)?;
    Ok(Outcome::some_if(missing == 0))
}
