//! `koel store gc`: drops the chunks of removed files, and rewrites segments that hold much that is dead.
#![forbid(unsafe_code)]

use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store rm old.iso --db backups && koel store gc --db backups")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = db.archive()?;
    let before = archive.store().stats().log_bytes;
    let collected = archive.collect().map_err(|error| db.archive_failure(error))?;
    let after = archive.store().stats().log_bytes;
    db.close(archive.into_store())?;
    let report = if args.json {
        output::json(&json!({
            "dropped_chunks": collected.dropped,
            "disk_before": before,
            "disk_after": after,
        }))
    } else {
        output::table(&[
            ("dropped chunks", grouped(collected.dropped)),
            ("on disk", format!("{}, {} before", bytes(after), bytes(before))),
        ])
    };
    output::print(&report)?;
    Ok(Outcome::Done)
}
