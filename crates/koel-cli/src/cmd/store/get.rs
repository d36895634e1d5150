//! `koel store get`: prints the value of a key, byte for byte.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Read;

use super::database::{Database, key};
use crate::failure::{Failure, Outcome};
use crate::output::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store get greeting --db notes
  koel store get picture --db notes > picture.png

The value is printed byte for byte, without a newline at the end.

Exit codes: 0 found, 1 not found, 2 error.")]
pub(crate) struct Args {
    /// The key to look up
    key: OsString,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let store = db.read()?;
    let found = store.get_reader(&key(&args.key)?).map_err(|error| db.failure(error))?;
    let Some(mut value) = found else { return Ok(Outcome::None) };
    let mut out = Lines::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match value.read(&mut buffer).map_err(|error| db.read_failure(error))? {
            0 => break,
            count => out.raw(&buffer[..count])?,
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}
