//! `koel store del`: deletes records, durably when the command ends.

use super::database::{Access, Database};
use super::key::KeyArgs;
use crate::failure::{Failure, Outcome};
use crate::quantity::counted;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store del greeting --db notes
  koel store keys --prefix tmp/ --db notes > old && koel store del - --db notes < old

Exit codes: 0 all keys were found, 1 one was not (the others are deleted), 2 error.")]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
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
