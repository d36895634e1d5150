//! `koel store del`: deletes records, durably when the command ends.
#![forbid(unsafe_code)]

use std::ffi::OsString;

use koel_store::Durability;

use super::database::{Database, key};
use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store del greeting --db notes

Exit codes: 0 all keys were found, 1 one was not (the others are deleted), 2 error.")]
pub(crate) struct Args {
    /// The keys to delete
    #[arg(required = true)]
    keys: Vec<OsString>,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let keys = args.keys.iter().map(|text| key(text)).collect::<Result<Vec<_>, _>>()?;
    let store = db.open()?;
    let mut all = true;
    for key in keys {
        let deleted = store.delete(&key, Durability::None).map_err(|error| db.failure(error))?;
        if !deleted {
            db.report_not_found(&key)?;
        }
        all &= deleted;
    }
    db.close(store)?;
    Ok(Outcome::some_if(all))
}
