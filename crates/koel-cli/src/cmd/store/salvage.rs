//! `koel store salvage`: copies everything readable from a damaged store into a new one.
//!
//! The damaged store is not changed and may be on a read-only disk. Every intact record is copied.
//! Then every file is checked, so that the report names the files to restore from elsewhere.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel_store::SalvageReport;
use koel_store::content::{Archive, ArchiveVerifyReport};
use serde_json::json;

use super::database::Database;
use super::ordered;
use super::verify::{damage_lines, verified_files};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store salvage --db backups --to rescued

Use it if a store does not open, or if koel store verify finds damage, and there is no copy.
Damaged records are lost. If only an older value of a key is readable, the key is omitted, unless
its newer value was in the last segment (128 MiB) of a store that was not closed.
If the disk is failing, copy the folder first with a program that skips read errors (ddrescue).

Exit codes: 0 everything was readable, 1 something was not (see standard output), 2 error.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Folder of the new store
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (old, new) = (&args.database, Database::at(&args.to));
    if !old.has_any_file() {
        return Err(Failure::Usage(format!(
            "{} has no files of a store; check the name",
            old.folder().display()
        )));
    }
    if new.exists() || old.is_in(&args.to) {
        return Err(Failure::Usage(format!(
            "{} already has a store; name a new folder",
            args.to.display()
        )));
    }
    if old.looks_ordered() {
        return ordered::salvage(old, &new, args.json);
    }
    let store = new.open_or_create()?;
    let mut progress = None;
    let mut seen = 0;
    let salvaged = store.salvage(old.folder(), |read, all| {
        let start = || Progress::start("salvaging", Some(all), Stdout::Silent);
        progress.get_or_insert_with(start).advance(read - seen);
        seen = read;
    });
    let salvaged = salvaged.map_err(|error| old.failure(error))?;
    drop(progress);
    let keys = store.stats().keys;
    let archive = Archive::new(store);
    archive.repair().map_err(|error| new.archive_failure(error))?;
    let files = verified_files(&archive, &new)?;
    new.close(archive.into_store())?;
    output::print(&report(&salvaged, keys, &files, args.json))?;
    Ok(Outcome::some_if(salvaged.damages.is_empty() && files.broken.is_empty()))
}

fn report(salvaged: &SalvageReport, keys: u64, files: &ArchiveVerifyReport, json: bool) -> String {
    if json {
        let damage: Vec<String> = salvaged.damages.iter().map(ToString::to_string).collect();
        return output::json(&json!({
            "records": salvaged.records,
            "keys": keys,
            "lost_keys": salvaged.lost,
            "damage": damage,
            "intact_files": files.sound,
            "file_bytes": files.bytes,
            "damaged_files": files.broken.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }));
    }
    output::table(&[
        ("records", format!("{} copied", grouped(salvaged.records))),
        ("keys", format!("{} recovered, {} lost", grouped(keys), grouped(salvaged.lost))),
        ("files", format!("{} intact ({})", grouped(files.sound), bytes(files.bytes))),
    ]) + &damage_lines(&salvaged.damages, files)
}
