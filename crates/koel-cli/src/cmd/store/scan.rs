//! `koel store scan`: prints the records of an ordered store in the order of their keys.

use koel_store::content::Archive;
use koel_store::{Error, LsmOptions};

use super::database::{Access, Database};
use super::key::KeyForm;
use super::key_range::KeyRangeArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store scan --db events                              everything
  koel store scan --prefix user/ --db users
  koel store scan --from 2026-11-01 --to 2026-12-01 --db events
  koel store scan --reverse --db events | head             the last keys first

Prints key, tab, value on a line each. What is not printable in a key or a value is escaped, as by
koel store get. With -0, keys and values are printed byte for byte, each with a zero byte at its
end. Keys are compared byte by byte.

Where the store is damaged, scan goes on behind the damage, and ends with the first such error.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    #[command(flatten)]
    keys: KeyRangeArgs,

    /// Start with the last key
    #[arg(long)]
    reverse: bool,

    #[command(flatten)]
    form: KeyForm,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, form) = (&args.database, args.form);
    let bounds = args.keys.bounds(form)?;
    let store = db.ordered(Access::Read, LsmOptions::default())?;
    let (mut out, mut damage) = (Lines::new(), None);
    let mut print = |entry: Result<(Vec<u8>, Vec<u8>), Error>| -> Result<(), Failure> {
        let (key, value) = match entry {
            Err(error @ Error::Damaged { .. }) => {
                damage.get_or_insert(error);
                return Ok(());
            }
            entry => entry.map_err(|error| db.failure(error))?,
        };
        if Archive::is_reserved(&key) {
            return Ok(());
        }
        form.print_record(&key, &value[..], db, &mut out)
    };
    let mut range = store.range(bounds).map_err(|error| db.failure(error))?;
    if args.reverse {
        range.rev().try_for_each(&mut print)?;
    } else {
        range.try_for_each(&mut print)?;
    }
    out.finish()?;
    damage.map_or(Ok(Outcome::Done), |error| Err(db.failure(error)))
}
