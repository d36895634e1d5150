//! `koel store put`: one record, durable when the command ends.
//!
//! A value from a file is streamed, so it may be larger than memory; standard input is read to its end first, because a record begins with
//! its length.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use koel_store::Durability;

use super::database::{Database, key};
use crate::failure::{Failure, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a value and without -f, the value is what standard input yields, to the last byte. A value has at most
4 GiB; `koel store import` takes larger files.

Examples:
  koel store put greeting hello --db notes
  koel store put picture -f picture.png --db notes
  date | koel store put today --db notes")]
pub(crate) struct Args {
    /// The key
    key: OsString,

    /// The value
    #[arg(conflicts_with = "file")]
    value: Option<OsString>,

    /// Take the value from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    database: Database,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, key) = (&args.database, key(&args.key)?);
    let store = match (&args.file, &args.value) {
        (Some(path), _) => {
            let read = |error| Failure::read(path, error);
            let file = File::open(path).map_err(read)?;
            let length = file.metadata().map_err(read)?.len();
            let store = db.open_or_create()?;
            let put = store.put_reader(key, length, file, Durability::Synced);
            put.map_err(|error| db.failure(error))?;
            store
        }
        (None, value) => {
            let value = value
                .as_ref()
                .map_or_else(standard_input, |value| Ok(value.as_encoded_bytes().to_vec()))?;
            let store = db.open_or_create()?;
            let put = store.put(key, &value, Durability::Synced);
            put.map_err(|error| db.failure(error))?;
            store
        }
    };
    db.close(store)?;
    Ok(Outcome::Done)
}

fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut value);
    read.map_err(|error| Failure::read("standard input".as_ref(), error))?;
    Ok(value)
}
