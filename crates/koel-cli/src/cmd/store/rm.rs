//! `koel store rm`: files out. Their chunks stay until `koel store gc`, since other files may have them too.
#![forbid(unsafe_code)]

use koel_store::content::Archive;

use super::database::Database;
use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The space comes back with `koel store gc`.

Examples:
  koel store rm old.iso --db backups

Exit codes: 0 all were there, 1 one was not (the others are removed), 2 error.")]
pub(crate) struct Args {
    /// The names, as `koel store ls` prints them
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
            db.not_there(name)?;
        }
        all &= removed;
    }
    db.close(archive.into_store())?;
    Ok(Outcome::some_if(all))
}
