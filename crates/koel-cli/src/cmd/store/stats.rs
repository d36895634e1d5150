//! `koel store stats`: shows the contents and the disk and memory use of a store.
//!
//! Files with damaged records are not counted; an error at the end reports them.

use koel_store::content::{Archive, Kind};
use koel_store::{LsmOptions, LsmStats, RunStats, StoreKind};
use serde_json::json;

use super::database::{Access, Database};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, counted, grouped, rate};
use crate::report::Report;

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
    if db.kind(Access::Read)? == Some(StoreKind::Lsm) {
        return of_ordered(db, args.json);
    }
    let archive = Archive::new(db.log(Access::Read)?);
    let (mut files, mut length, mut failure) = (0_u64, 0, None);
    for version in archive.entries().map_err(|error| db.archive_failure(error))? {
        let counted = version.and_then(|version| {
            archive.walk(&version.name, &version.entry, &mut |_, entry| {
                if let Kind::File(file) = &entry.kind {
                    (files, length) = (files + 1, length + file.content.length);
                }
                Ok(true)
            })
        });
        failure = counted.err().map(|error| db.archive_failure(error)).or(failure);
    }
    let stats = archive.store().stats();
    let dead = rate(stats.dead_bytes as f64 / stats.log_bytes.max(1) as f64);
    let on_disk = format!("{} in {}", bytes(stats.log_bytes), counted(stats.segments, "segment"));
    let mut report = Report::default();
    report
        .add("records", stats.keys, "records", grouped(stats.keys))
        .add("files", files, "files", format!("{} ({})", grouped(files), bytes(length)))
        .json("file_bytes", length)
        .add("log_bytes", stats.log_bytes, "on disk", on_disk)
        .add(
            "dead_bytes",
            stats.dead_bytes,
            "dead",
            format!("{} ({dead})", bytes(stats.dead_bytes)),
        )
        .json("tombstone_bytes", stats.tombstone_bytes)
        .json("segments", stats.segments)
        .add("index_bytes", stats.index_bytes, "index", in_memory(stats.index_bytes));
    output::print(&report.text(args.json))?;
    failure.map_or(Ok(Outcome::Done), Err)
}

fn in_memory(size: u64) -> String {
    format!("{} in memory", bytes(size))
}

fn of_ordered(db: &Database, json: bool) -> Result<Outcome, Failure> {
    // Builds the guide at once.
    let stats = db.ordered(Access::Read, LsmOptions::default().background(false))?.stats();
    let (entries, tables) = (entries(&stats), stats.table_bytes());
    let (log, logged) = (stats.log_bytes, stats.memtable_entries);
    let versions = format!("{}, old versions and deletions included", grouped(entries));
    let on_disk = format!("{} in {}", bytes(tables), counted(stats.runs.len() as u64, "run"));
    let runs = stats.runs.iter().map(|run| {
        json!({
            "file": run.number,
            "bytes": run.bytes,
            "entries": run.entries,
            "keys": run.keys,
            "tombstones": run.tombstones,
            "range_deletions": run.range_deletions,
        })
    });
    let mut report = Report::default();
    report
        .add("kind", "ordered", "kind", "ordered")
        .add("entries", entries, "entries", versions)
        .add("table_bytes", tables, "on disk", on_disk)
        .add("log_bytes", log, "log", format!("{} ({})", bytes(log), counted(logged, "record")))
        .json("log_entries", logged)
        .add("guide_bytes", stats.guide_bytes, "guide", in_memory(stats.guide_bytes))
        .json("runs", runs.collect::<Vec<_>>());
    let line = |(run, number): (&RunStats, u64)| {
        let (size, keys) = (bytes(run.bytes), counted(run.keys, "key"));
        let deletions = counted(run.tombstones + run.range_deletions, "deletion");
        format!("run {number:<5}{size:>10}  {keys}, {deletions}\n")
    };
    let lines: String = stats.runs.iter().zip(1..).map(line).collect();
    output::print(&(report.text(json) + if json { "" } else { &lines }))?;
    Ok(Outcome::Done)
}

/// Versions of keys in all runs and in the log of an ordered store.
pub(super) fn entries(stats: &LsmStats) -> u64 {
    stats.runs.iter().map(|run| run.entries).sum::<u64>() + stats.memtable_entries
}
