//! `koel store ls`: the files of a store, in the order in which they came. Those whose records are damaged are missing, and that is said at the end.
#![forbid(unsafe_code)]

use koel_store::content::Archive;
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output::{Lines, in_one_line};
use crate::quantity::grouped;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line is the length in bytes and the name, control characters in it as \\n or \\u{1b}; with --json it is
one object with the name as it is, and the hash too.

Examples:
  koel store ls --db backups
  koel store ls --json --db backups | jq -r .name")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print a JSON object for each file, one a line
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
            format!("{:>17}  {}", grouped(entry.length), in_one_line(&entry.name))
        };
        out.line(line.as_bytes(), b'\n')?;
    }
    out.finish()?;
    failure.map_or(Ok(Outcome::Done), Err)
}

fn hexadecimal(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
