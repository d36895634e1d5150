//! `koel store get`: prints the value of a key, byte for byte, or several keys and their values.

use clap::ArgGroup;

use super::database::{Access, Database};
use super::key::{KeyArgs, each_piece};
use crate::failure::{Failure, Outcome};
use crate::output::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store get greeting --db notes
  koel store get picture --db notes > picture.png
  koel store get greeting today --db notes         several: key, tab, value on a line each
  koel store keys --db notes | koel store get - --db notes

The value of a single key is printed byte for byte, without a newline at the end.
For several keys, what is not printable in a key or a value is escaped: \\n, \\t, \\x1b, and \\\\ for a
backslash. With -0, keys and values are printed byte for byte, each with a zero byte at its end.

Exit codes: 0 all keys were found, 1 one was not, 2 error.")]
#[command(group(ArgGroup::new("wanted").arg("keys").required(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    keys: KeyArgs,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, form) = (&args.database, args.keys.form);
    let store = db.open(Access::Read)?;
    let find = |key: &[u8]| store.find(key).map_err(|error| db.failure(error));
    let mut out = Lines::new();
    let mut all = true;
    if let Some(key) = args.keys.single()? {
        match find(&key)? {
            Some(value) => each_piece(value, db, |piece| out.raw(piece))?,
            None => {
                all = false;
                db.report_not_found(&key)?;
            }
        }
    } else {
        args.keys.each(|key| {
            let Some(value) = find(&key)? else {
                all = false;
                return db.report_not_found(&key);
            };
            form.print_record(&key, value, db, &mut out)
        })?;
    }
    out.finish()?;
    Ok(Outcome::some_if(all))
}
