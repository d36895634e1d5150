//! `koel store stats`: what a store holds, and what it costs on disk and in memory. Files whose records are damaged are not counted, and that is said at the end.
#![forbid(unsafe_code)]

use koel_store::content::Archive;
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, grouped, rate};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Records are those of `put`, and the chunks and lists of imported files. Dead bytes are overwritten or deleted
ones; `koel store gc` gives them back.

Examples:
  koel store stats --db backups
  koel store stats --json --db backups | jq .dead_bytes")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = Archive::new(db.read()?);
    let (mut files, mut length, mut failure) = (0, 0, None);
    for entry in archive.entries().map_err(|error| db.archive_failure(error))? {
        match entry {
            Ok(entry) => (files, length) = (files + 1, length + entry.length),
            Err(error) => failure = Some(db.archive_failure(error)),
        }
    }
    let stats = archive.store().stats();
    let report = if args.json {
        output::json(&json!({
            "records": stats.keys,
            "files": files,
            "file_bytes": length,
            "log_bytes": stats.log_bytes,
            "dead_bytes": stats.dead_bytes,
            "tombstone_bytes": stats.tombstone_bytes,
            "segments": stats.segments,
            "index_bytes": stats.index_bytes,
        }))
    } else {
        let dead = stats.dead_bytes as f64 / stats.log_bytes.max(1) as f64;
        output::table(&[
            ("records", grouped(stats.keys)),
            ("files", format!("{}, {}", grouped(files), bytes(length))),
            (
                "on disk",
                format!("{} in {} segments", bytes(stats.log_bytes), grouped(stats.segments)),
            ),
            ("dead", format!("{}, {}", bytes(stats.dead_bytes), rate(dead))),
            ("index", format!("{} in memory", bytes(stats.index_bytes))),
        ])
    };
    output::print(&report)?;
    failure.map_or(Ok(Outcome::Done), Err)
}
