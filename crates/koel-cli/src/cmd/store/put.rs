//! `koel store put`: stores one record, durably when the command ends.
//!
//! A value from a file is streamed, so it may be larger than memory; an ordered store takes only
//! values that are not. An input of unknown length
//! (standard input, a pipe, a file in `/proc`) is read into memory first, because a record begins
//! with its length.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use koel_store::Durability;

use super::database::{Access, Database, Value};
use super::key::KeyForm;
use crate::failure::{Failure, Outcome};
use crate::input;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store put greeting hello --db notes
  koel store put picture -f picture.png --db notes
  date | koel store put today --db notes

In KEY, \\\\ stands for a backslash, and \\n, \\t and \\x1b for what they are in C, unless -0 is given.
The value is taken as it is. It is read from standard input if neither VALUE nor -f is given.
A value has at most 4 GiB, and 256 MiB in an ordered store; use koel store import for larger files.")]
pub(crate) struct Args {
    /// The key to store, as koel store keys prints it
    key: OsString,

    /// Its value
    #[arg(conflicts_with = "file")]
    value: Option<OsString>,

    /// Read the value from a file; `-` is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    form: KeyForm,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, key) = (&args.database, args.form.key(args.key.as_encoded_bytes())?);
    let value = value(args)?;
    let store = db.open(Access::Create)?;
    store.put(&key, value, Durability::Synced).map_err(|error| db.failure(error))?;
    db.close_changed(store)?;
    Ok(Outcome::Done)
}

fn value(args: &Args) -> Result<Value, Failure> {
    if let Some(value) = &args.value {
        return Ok(Value::Whole(value.as_encoded_bytes().to_vec()));
    }
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    let (mut source, length) = input::open_stream(path)?;
    // Files in /proc report a length of 0.
    if let Some(length) = length.filter(|&length| length > 0) {
        return Ok(Value::Stream { source, length });
    }
    let mut bytes = Vec::new();
    let read = source.read_to_end(&mut bytes);
    read.map_err(|error| Failure::read(input::name_of(path), error))?;
    Ok(Value::Whole(bytes))
}
