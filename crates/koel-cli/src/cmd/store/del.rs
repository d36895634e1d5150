//! `koel store del`: deletes records, durably when the command ends.

use std::ops::Bound;

use clap::ArgGroup;
use koel_store::{Durability, LsmOptions};

use super::database::{Access, Database};
use super::key::KeyArgs;
use super::key_range::KeyRangeArgs;
use crate::failure::{Failure, Outcome};
use crate::quantity::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store del greeting --db notes
  koel store keys --prefix tmp/ --db notes > old && koel store del - --db notes < old
  koel store del --prefix user/7/ --db users          an ordered store: a part of the keys at once
  koel store del --to 2026-11-01 --db events

Exit codes: 0 all keys were found, or a part of the keys was deleted; 1 a key was not found (the
others are deleted), 2 error.")]
#[command(group(ArgGroup::new("deleted")
    .args(["keys", "prefix", "from", "to"]).required(true).multiple(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    range: KeyRangeArgs,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    if args.range.is_given() {
        return delete_range(args);
    }
    let store = db.open(Access::Change)?;
    let (mut all, mut done) = (true, 0);
    let deleted = args.keys.each(|key| {
        if store.delete(&key).map_err(|error| db.failure(error))? {
            done += 1;
            return Ok(());
        }
        all = false;
        db.report_not_found(&key)
    });
    if deleted.is_err() && done > 0 {
        db.report_done(&format!("{} deleted", counted(done, "key")))?;
    }
    deleted?;
    db.close_changed(store)?;
    Ok(Outcome::some_if(all))
}

fn delete_range(args: &Args) -> Result<Outcome, Failure> {
    if args.keys.is_given() {
        let sentence = "give keys, or a part of the keys by --prefix, --from and --to, not both";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    let db = &args.database;
    let (from, to) = args.range.bounds(args.keys.form)?;
    // Later keys are reserved for imported files.
    let to = if to == Bound::Unbounded { Bound::Excluded(vec![0xff]) } else { to };
    let store = db.ordered(Access::Change, LsmOptions::default())?;
    let deleted = store.delete_range((from, to), Durability::None);
    deleted.map_err(|error| db.failure(error))?;
    db.close_changed(store)?;
    Ok(Outcome::Done)
}
