//! `koel store keys`: lists the keys of a store. An ordered store lists them in the order of their
//! bytes, a log store in the order in which their values were written.
//!
//! The keys of damaged records are missing from the list; an error at the end reports them.

use std::ffi::OsString;

use serde_json::json;

use super::database::{Access, Database};
use super::key::KeyForm;
use crate::escape::escape;
use crate::failure::{Failure, Outcome};
use crate::output::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store keys --db notes
  koel store keys --prefix user/ --db notes | koel store get - --db notes
  koel store keys -0 --db notes | xargs -0 -n 1 echo

What is not printable in a key is escaped: \\n, \\x1b, and \\\\ for a backslash. Every key is accepted
as it is printed. An ordered store lists its keys in the order of their bytes, a log store in the
order in which their values were written.
With --json, each line is an object; `escaped` is the printed key.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Only keys that start with this
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: OsString,

    /// Print one JSON object per line
    #[arg(long, conflicts_with = "null")]
    json: bool,

    #[command(flatten)]
    form: KeyForm,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, form) = (&args.database, args.form);
    let prefix = form.key(args.prefix.as_encoded_bytes())?;
    let store = db.open(Access::Read)?;
    let mut out = Lines::new();
    let damage = store.each_key(
        &prefix,
        |error| db.failure(error),
        |key| {
            if args.json {
                let text = String::from_utf8_lossy(key);
                let object = json!({ "key": text, "escaped": escape(key) });
                return out.line(object.to_string().as_bytes(), b'\n');
            }
            form.print(key, &mut out, b'\n')
        },
    )?;
    out.finish()?;
    damage.map_or(Ok(Outcome::Done), |error| Err(db.failure(error)))
}
