//! `koel store create`: creates an empty store of the kind that is asked for.

use std::path::PathBuf;

use koel_store::LsmOptions;

use super::database::{Access, Database};
use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store create events --ordered
  koel store put 2026-11-26T18:00 start --db events
  koel store scan --prefix 2026-11 --db events

A log store holds records and imported files. A get of a key reads one record.
An ordered store holds records in the order of their keys, and has `koel store scan`.
Without this command, koel store put and koel store import create a log store.")]
pub(crate) struct Args {
    /// Folder of the new store
    dir: PathBuf,

    /// Create an ordered store, which lists its records by key
    #[arg(long)]
    ordered: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = Database::at(&args.dir);
    db.refuse_if(db.has_any_file())?;
    if args.ordered {
        db.close(db.ordered(Access::Create, LsmOptions::default())?)?;
    } else {
        db.close(db.open(Access::Create)?)?;
    }
    Ok(Outcome::Done)
}
