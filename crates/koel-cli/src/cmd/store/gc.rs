//! `koel store gc`: deletes the chunks of removed files and compacts segments with dead records.
#![forbid(unsafe_code)]

use koel_store::content::{Archive, ArchiveError, CollectProgress, CollectReport};
use serde_json::json;

use super::database::Database;
use super::ordered;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store rm old.iso --db backups && koel store gc --db backups

It frees the space of removed files and of deleted or overwritten records.")]
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
        return ordered::gc(db, args.json);
    }
    let archive = Archive::new(db.open()?);
    let before = archive.store().stats().log_bytes;
    let collected = collect(&archive, before).map_err(|error| db.archive_failure(error))?;
    let after = archive.store().stats().log_bytes;
    db.close(archive.into_store())?;
    db.keep_reserve();
    let report = if args.json {
        output::json(&json!({
            "deleted_chunks": collected.dropped,
            "log_bytes_before": before,
            "log_bytes": after,
        }))
    } else {
        output::table(&[
            ("deleted chunks", grouped(collected.dropped)),
            ("on disk", format!("{} ({} before)", bytes(after), bytes(before))),
        ])
    };
    output::print(&report)?;
    Ok(Outcome::Done)
}

/// Collects garbage, with a progress bar for the scan and one for the compaction.
fn collect(archive: &Archive, log_bytes: u64) -> Result<CollectReport, ArchiveError> {
    let start = |label, total| Progress::start(label, total, Stdout::Silent);
    let (mut progress, mut seen) = (start("scanning chunks", Some(log_bytes)), 0);
    let mut compacting = false;
    archive.collect(|step| match step {
        CollectProgress::Searching { read, .. } => {
            progress.advance(read - seen);
            seen = read;
        }
        CollectProgress::Copied(bytes) => {
            if !compacting {
                progress = start("compacting", None);
                compacting = true;
            }
            progress.advance(bytes);
        }
    })
}
