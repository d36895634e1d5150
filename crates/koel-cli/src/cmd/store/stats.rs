//! `koel store stats`: shows the contents and the disk and memory use of a store.
//!
//! Files with damaged records are not counted; an error at the end reports them.
#![forbid(unsafe_code)]

use koel_store::content::{Archive, Kind};
use serde_json::json;

use super::database::Database;
use super::ordered;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, counted, grouped, rate};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store stats --db backups
  koel store stats --json --db backups | jq .dead_bytes

Records are those of koel store put, and the chunks and metadata of imported files.
Dead bytes belong to overwritten or deleted records; koel store gc frees them.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    if db.is_ordered()? {
        return ordered::stats(db, args.json);
    }
    let archive = Archive::new(db.read()?);
    let (mut files, mut length, mut failure) = (0_u64, 0, None);
    for version in archive.entries().map_err(|error| db.archive_failure(error))? {
        match version {
            Ok(version) => {
                let counted = archive.walk(&version.name, &version.entry, &mut |_, entry| {
                    if let Kind::File(file) = &entry.kind {
                        (files, length) = (files + 1, length + file.content.length);
                    }
                    Ok(true)
                });
                failure = counted.err().map(|error| db.archive_failure(error)).or(failure);
            }
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
            ("files", format!("{} ({})", grouped(files), bytes(length))),
            (
                "on disk",
                format!("{} in {}", bytes(stats.log_bytes), counted(stats.segments, "segment")),
            ),
            ("dead", format!("{} ({})", bytes(stats.dead_bytes), rate(dead))),
            ("index", format!("{} in memory", bytes(stats.index_bytes))),
        ])
    };
    output::print(&report)?;
    failure.map_or(Ok(Outcome::Done), Err)
}
