//! `koel store gc`: deletes the chunks of removed files and compacts segments with dead records.

use koel_store::content::{Archive, ArchiveError, CollectProgress, CollectReport};

use super::database::{Access, Database, Records};
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store rm old.iso --db backups && koel store gc --db backups

It frees the space of removed files and of deleted or overwritten records. Damaged bytes that
nothing needs any more are dropped too; other damage stays, and is an error.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let sizes = |before, after| format!("{} ({} before)", bytes(after), bytes(before));
    let mut report = Report::default();
    match db.open(Access::Change)? {
        Records::Log(store) => {
            let archive = Archive::new(store);
            let on_disk = || archive.store().stats().log_bytes;
            let before = on_disk();
            let collected = collect(&archive, before).map_err(|error| db.archive_failure(error))?;
            let (dropped, damage) = (collected.dropped, collected.compacted.damage_dropped);
            let places = if damage > 0 { counted(damage, "damaged place") } else { String::new() };
            let after = on_disk();
            db.close_changed(archive.into_store())?;
            report
                .add("deleted_chunks", dropped, "deleted chunks", grouped(dropped))
                .add("dropped_damage", damage, "dropped", places)
                .json("log_bytes_before", before)
                .add("log_bytes", after, "on disk", sizes(before, after));
        }
        Records::Ordered(store) => {
            let on_disk = || store.stats().table_bytes() + store.stats().log_bytes;
            let before = on_disk();
            store.compact().map_err(|error| db.failure(error))?;
            let (after, runs) = (on_disk(), store.stats().runs.len());
            db.close_changed(store)?;
            report
                .json("bytes_before", before)
                .json("bytes", after)
                .add("runs", runs, "runs", grouped(runs as u64))
                .row("on disk", sizes(before, after));
        }
    }
    report.print(args.json)
}

/// Collects garbage, with a progress bar for the scan and one for the compaction.
fn collect(archive: &Archive, log_bytes: u64) -> Result<CollectReport, ArchiveError> {
    let start = |label, total| Progress::start(label, total, Stdout::Silent);
    let (mut progress, mut compacting) = (start("scanning chunks", Some(log_bytes)), false);
    archive.collect(|step| match step {
        CollectProgress::Searching { read, .. } => progress.set(read),
        CollectProgress::Copied(bytes) => {
            if !std::mem::replace(&mut compacting, true) {
                progress = start("compacting", None);
            }
            progress.advance(bytes);
        }
    })
}
