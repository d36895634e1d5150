//! `koel store salvage`: copies everything readable from a damaged store into a new one.
//!
//! The damaged store is not changed and may be on a read-only disk. Every intact record is copied.
//! Then every file is checked, so that the report names the files to restore from elsewhere.

use std::path::PathBuf;

use koel_store::content::Archive;
use koel_store::{LsmOptions, SalvageReport};

use super::database::{Access, Database, Records};
use super::stats::entries;
use super::verify::{add_damage, verified_files};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::Progress;
use crate::quantity::grouped;
use crate::report::Report;

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
        return Err(Failure::about(old.folder(), "has no files of a store; check the name"));
    }
    new.refuse_if(new.exists() || old.is_in(&args.to))?;
    let (store, label, done) = if old.looks_ordered() {
        let store = new.ordered(Access::Create, LsmOptions::default())?;
        (Records::Ordered(store), "salvaging files", "read")
    } else {
        (Records::Log(new.log(Access::Create)?), "salvaging", "copied")
    };
    let from = old.folder();
    let salvaged = Progress::watch(label, |seen| match &store {
        Records::Log(store) => store.salvage(from, seen),
        Records::Ordered(store) => store.salvage(from, seen),
    });
    let SalvageReport { records, lost, damages, .. } =
        salvaged.map_err(|error| old.failure(error))?;
    let (keys, files) = match store {
        Records::Log(store) => {
            let (keys, archive) = (store.stats().keys, Archive::new(store));
            archive.repair().map_err(|error| new.archive_failure(error))?;
            let files = verified_files(&archive, &new)?;
            new.close(archive.into_store())?;
            (keys, Some(files))
        }
        Records::Ordered(store) => {
            let keys = entries(&store.stats());
            new.close(store)?;
            (keys, None)
        }
    };
    let recovered = format!("{} recovered, {} lost", grouped(keys), grouped(lost));
    let mut report = Report::default();
    report
        .add("records", records, "records", format!("{} {done}", grouped(records)))
        .add("keys", keys, "keys", recovered)
        .json("lost_keys", lost);
    let damage = add_damage(&mut report, &damages, files.as_ref(), false);
    output::print(&(report.text(args.json) + if args.json { "" } else { &damage }))?;
    let is_broken = files.is_some_and(|files| !files.broken.is_empty());
    Ok(Outcome::some_if(damages.is_empty() && !is_broken))
}
