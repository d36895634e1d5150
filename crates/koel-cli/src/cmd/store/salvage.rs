//! `koel store salvage`: what can still be read of a damaged store, in a new one.
//!
//! Nothing is changed in the damaged store, which may be on a disk that takes no writes. Every sound record is written once more, and then every file is checked, so that the report names
//! what has to come from elsewhere.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel_store::Salvaged;
use koel_store::content::{Archive, ArchiveVerified};
use serde_json::json;

use super::database::Database;
use super::verify::{broken_lines, verified_files};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
For a store that does not open, or in which `koel store verify` finds damage, and of which there is no copy. Where bytes
cannot be read, what they held is gone. A key of which only an older value is left is left out, if the store still knows
that there was a later one; it knows of all but the last segment (128 MiB), and of that too if the store was closed.
On a disk that fails, copy the folder first, with a program that goes on behind errors (ddrescue).

Examples:
  koel store salvage --db backups --to rescued

Exit codes: 0 all of it could be read, 1 some could not, and standard output says what, 2 error.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// The folder of the new store
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (old, new) = (&args.database, Database::at(&args.to));
    if !old.has_left_anything() {
        return Err(Failure::Usage(format!(
            "there is nothing of a store in {}; check the name",
            old.folder().display()
        )));
    }
    if new.exists() || old.is_in(&args.to) {
        return Err(Failure::Usage(format!(
            "there is a store in {} already; name a new folder",
            args.to.display()
        )));
    }
    let store = new.open_or_create()?;
    let mut progress = None;
    let mut seen = 0;
    let salvaged = store.salvage(old.folder(), |read, all| {
        let start = || Progress::start("reading what is left", Some(all), Stdout::Silent);
        progress.get_or_insert_with(start).advance(read - seen);
        seen = read;
    });
    let salvaged = salvaged.map_err(|error| old.failure(error))?;
    drop(progress);
    let keys = store.stats().keys;
    let archive = Archive::new(store);
    archive.mend().map_err(|error| new.archive_failure(error))?;
    let files = verified_files(&archive, &new)?;
    new.close(archive.into_store())?;
    output::print(&report(&salvaged, keys, &files, args.json))?;
    Ok(Outcome::some_if(salvaged.damages.is_empty() && files.broken.is_empty()))
}

fn report(salvaged: &Salvaged, keys: u64, files: &ArchiveVerified, json: bool) -> String {
    if json {
        let damages: Vec<String> = salvaged.damages.iter().map(ToString::to_string).collect();
        return output::json(&json!({
            "records": salvaged.records,
            "keys": keys,
            "lost_keys": salvaged.lost,
            "damages": damages,
            "sound_files": files.sound,
            "file_bytes": files.bytes,
            "broken_files": files.broken.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        }));
    }
    output::table(&[
        ("records", format!("{} read", grouped(salvaged.records))),
        ("keys", format!("{}, and {} known to be lost", grouped(keys), grouped(salvaged.lost))),
        ("files", format!("{} sound, {}", grouped(files.sound), bytes(files.bytes))),
    ]) + &broken_lines(&salvaged.damages, files)
}
