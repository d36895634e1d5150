//! `koel store verify`: checks every record against its checksum and every file against its hash.
#![forbid(unsafe_code)]

use koel_store::Damage;
use koel_store::content::{Archive, ArchiveVerifyReport};
use serde_json::json;

use super::database::Database;
use super::ordered;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store verify --db backups

Damage is listed on standard output, and so are files that changed while they were imported: their
bytes are those that were read, perhaps of several moments.

Exit codes: 0 everything is intact, 2 something is damaged.")]
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
        return ordered::verify(db, args.json);
    }
    let archive = Archive::new(db.read()?);
    let log_bytes = archive.store().stats().log_bytes;
    let (progress, mut seen) =
        (Progress::start("verifying records", Some(log_bytes), Stdout::Silent), 0);
    let records = archive.store().verify(|read, _| {
        progress.advance(read - seen);
        seen = read;
    });
    let records = records.map_err(|error| db.failure(error))?;
    drop(progress);
    let files = verified_files(&archive, db)?;
    let damage: Vec<String> = records.damages.iter().map(ToString::to_string).collect();
    let report = if args.json {
        output::json(&json!({
            "records": records.records,
            "damage": damage,
            "intact_files": files.sound,
            "file_bytes": files.bytes,
            "changed_files": files.changed,
            "damaged_files": files.broken.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }))
    } else {
        output::table(&[
            ("records", format!("{} checked", grouped(records.records))),
            ("files", format!("{} intact ({})", grouped(files.sound), bytes(files.bytes))),
        ]) + &damage_lines(&records.damages, &files)
    };
    // Damage is an error even if the reader closed the pipe.
    let printed = output::print(&report);
    if damage.is_empty() && files.broken.is_empty() {
        return printed.map(|()| Outcome::Done);
    }
    Err(Failure::Broken(format!(
        "{}: {} and {}; restore the store from a copy, import the files again, or use \
         `koel store salvage`",
        db.folder().display(),
        counted(damage.len() as u64, "damaged place"),
        counted(files.broken.len() as u64, "damaged file")
    )))
}

/// Checks all files of the store in `db`.
pub(super) fn verified_files(
    archive: &Archive,
    db: &Database,
) -> Result<ArchiveVerifyReport, Failure> {
    let progress = Progress::start("verifying files", None, Stdout::Silent);
    let files = archive.verify(|count| progress.advance(count));
    files.map_err(|error| db.archive_failure(error))
}

/// A line for each damaged record, each damaged file, and each that changed during its import.
pub(super) fn damage_lines(damage: &[Damage], found: &ArchiveVerifyReport) -> String {
    let files = found.broken.iter().map(|(name, what)| format!("{name}: {what}"));
    let all = damage.iter().map(ToString::to_string).chain(files);
    let damaged = all.map(|line| format!("DAMAGED  {}\n", output::escape_controls(&line)));
    let changed = found.changed.iter();
    damaged.chain(changed.map(|name| format!("CHANGED  {name}: while it was imported\n"))).collect()
}
