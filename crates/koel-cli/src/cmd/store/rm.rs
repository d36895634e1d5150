//! `koel store rm`: removes files.
//!
//! Their chunks stay until `koel store gc`, because other files may share them.
#![forbid(unsafe_code)]

use koel_store::content::Archive;

use super::database::Database;
use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store rm old.iso --db backups

Run koel store gc afterwards to free the space.

Exit codes: 0 all files were found, 1 one was not (the others are removed), 2 error.")]
pub(crate) struct Args {
    /// Names of files, as koel store ls prints them
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = Archive::new(db.open()?);
    let mut all = true;
    for name in &args.names {
        let removed = archive.remove(name).map_err(|error| db.archive_failure(error))?;
        if !removed {
            db.report_not_found(name.as_bytes())?;
        }
        all &= removed;
    }
    db.close(archive.into_store())?;
    Ok(Outcome::some_if(all))
}
