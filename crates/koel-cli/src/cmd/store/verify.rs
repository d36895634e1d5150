//! `koel store verify`: every record against its checksum, every file against its hash.
#![forbid(unsafe_code)]

use koel_store::Damage;
use koel_store::content::{Archive, ArchiveVerified};
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store verify --db backups

Exit codes: 0 everything is sound, 2 something is not; what, is on standard output.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
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
    let damages: Vec<String> = records.damages.iter().map(ToString::to_string).collect();
    let report = if args.json {
        output::json(&json!({
            "records": records.records,
            "damages": damages,
            "sound_files": files.sound,
            "file_bytes": files.bytes,
            "broken_files": files.broken.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }))
    } else {
        output::table(&[
            ("records", format!("{} read", grouped(records.records))),
            ("files", format!("{} sound, {}", grouped(files.sound), bytes(files.bytes))),
        ]) + &broken_lines(&records.damages, &files)
    };
    // A reader that went away does not make it sound.
    let printed = output::print(&report);
    let broken = damages.len() + files.broken.len();
    if broken == 0 {
        return printed.map(|()| Outcome::Done);
    }
    Err(Failure::Broken(format!(
        "{broken} things are not as they were written; restore the files of the store, or what was imported, from a copy, or salvage the rest"
    )))
}

/// Checks all files of the store in `db`.
pub(super) fn verified_files(archive: &Archive, db: &Database) -> Result<ArchiveVerified, Failure> {
    let progress = Progress::start("verifying files", None, Stdout::Silent);
    let files = archive.verify(|count| progress.advance(count));
    files.map_err(|error| db.archive_failure(error))
}

/// A line for each thing that is broken.
pub(super) fn broken_lines(damages: &[Damage], files: &ArchiveVerified) -> String {
    let files = files.broken.iter().map(|(name, what)| format!("{name}: {what}"));
    let all = damages.iter().map(ToString::to_string).chain(files);
    all.map(|line| format!("BROKEN   {}\n", output::in_one_line(&line))).collect()
}
