//! `koel store create`: creates an empty store of the kind that is asked for.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use super::database::Database;
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
    if db.has_any_file() {
        return Err(Failure::Usage(format!(
            "{} already has a store; name a new folder",
            args.dir.display()
        )));
    }
    let store = if args.ordered { db.create_ordered()? } else { db.records_or_create()? };
    store.close().map_err(|error| db.failure(error))?;
    Ok(Outcome::Done)
}
