//! `koel store ls`: lists the files of a store in the order of import.
//!
//! Files with damaged records are missing from the list; an error at the end reports them.
#![forbid(unsafe_code)]

use koel_store::content::Archive;
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output::{Lines, escape_controls};
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store ls --db backups
  koel store ls --json --db backups | jq -r .name

Each line has the length in bytes and the name. Control characters in a name are escaped, such as
\\n or \\u{1b}. With --json, each line is an object with the unescaped name and the BLAKE3 hash.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = Archive::new(db.read()?);
    let mut out = Lines::new();
    let mut failure = None;
    for entry in archive.entries().map_err(|error| db.archive_failure(error))? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                failure = Some(db.archive_failure(error));
                continue;
            }
        };
        let line = if args.json {
            let object = json!({
                "name": entry.name,
                "length": entry.length,
                "chunks": entry.chunks,
                "blake3": hexadecimal(&entry.hash),
            });
            object.to_string()
        } else {
            format!("{:>17}  {}", grouped(entry.length), escape_controls(&entry.name))
        };
        out.line(line.as_bytes(), b'\n')?;
    }
    out.finish()?;
    failure.map_or(Ok(Outcome::Done), Err)
}

fn hexadecimal(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
