//! `koel add`: puts keys into a filter file.
//!
//! All keys go in or none: the changed filter replaces the file only after the last key found room. Cost: the whole file is read,
//! checked and written once, so add many keys at a time; memory: the filter.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::filter_file::Editing;
use crate::input::InputArgs;
use crate::output;
use crate::progress::Stdout;
use crate::quantity::{grouped, rate};
use crate::room::Room;
use crate::sizing;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every line is inserted, copies too; --unique inserts a key only if it is not in the set.
A filter that grows takes any number (see koel grow). In another one, if one key finds no room, the file stays as
it was and the exit code is 3.

Examples:
  koel add domains.koel new.txt
  echo example.com | koel add domains.koel")]
pub(crate) struct Args {
    /// The filter to change
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Insert a key only if it is not in the set
    #[arg(long)]
    unique: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let inputs = args.input.open()?;
    let mut editing = Editing::open(&args.filter)?;
    let before = editing.filter.len();
    let mut room = Room::in_filter(&editing.filter);
    inputs.each_until("adding", Stdout::Silent, |keys, share| {
        if share.is_some() && editing.filter.has_grown() {
            room.make(&mut editing.filter, keys.len() as u64, share);
        }
        sizing::insert(&mut editing.filter, keys, args.unique).map_err(|full| {
            let name = args.filter.display();
            let remedy = if editing.filter.layout().can_grow() {
                format!("{name} is unchanged; `koel grow {name}` lets it grow")
            } else {
                format!("{name} is unchanged; {}", sizing::CANNOT_GROW)
            };
            Failure::Full { full, remedy }
        })?;
        Ok(false)
    })?;
    let filter = &editing.filter;
    let (keys, capacity, held) = (filter.len(), filter.capacity(), sizing::keys_and_room(filter));
    let (expected, requested) =
        (filter.false_positive_rate(), filter.requested_false_positive_rate());
    if keys > before {
        editing.save()?;
    }
    let report = if args.json {
        output::json(&json!({
            "added": keys - before,
            "keys": keys,
            "capacity": capacity,
            "fpr_requested": requested,
            "fpr_expected": expected,
        }))
    } else {
        let mut rows = vec![
            ("added", grouped(keys - before)),
            ("keys", held),
            ("expected error rate", rate(expected)),
        ];
        if expected > requested {
            rows.push((
                "hint",
                format!("above the {} asked for; build a larger filter", rate(requested)),
            ));
        }
        output::table(&rows)
    };
    output::report_change(&args.filter, keys > before, &report)?;
    Ok(Outcome::Done)
}
