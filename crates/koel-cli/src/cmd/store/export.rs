//! `koel store export`: writes a stored file to disk, exactly as it was imported.
//!
//! Each chunk is checked against its hash and the whole file against its own. The output file
//! appears only if all are correct. Standard output gets only correct chunks; an error says that
//! the output is incomplete. Cost: one read and two hashes of every byte.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;

use koel_store::content::{Archive, ArchiveError};

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store export old.iso --db backups -o old.iso
  koel store export notes.tar --db backups -o - | tar x

The file appears only when every byte is checked and on the disk.
If killed before, koel may leave a .koel-* file in the same folder, which is safe to delete.")]
pub(crate) struct Args {
    /// Name of a file, as koel store ls prints it
    name: String,

    #[command(flatten)]
    database: Database,

    /// Where to write the file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let archive = Archive::new(db.read()?);
    let failure = |error| db.archive_failure(error);
    let length = archive.entry(&args.name).map_err(failure)?.length;
    let progress = Progress::start("exporting", Some(length), Stdout::Silent);
    if output::is_stdout(&args.out) {
        return match archive.export(&args.name, progress.meter(io::stdout().lock())) {
            Err(ArchiveError::Write(error)) => Err(Failure::stdout(error)),
            outcome => outcome.map(|_| Outcome::Done).map_err(failure),
        };
    }
    if db.contains(&args.out) {
        return Err(Failure::Usage(format!(
            "{} is in the folder of the store; choose another folder",
            args.out.display()
        )));
    }
    let mut archive_error = None;
    let written = output::write_file(&args.out, |sink| {
        archive.export(&args.name, progress.meter(sink)).map(drop).map_err(|error| match error {
            ArchiveError::Write(error) => error,
            other => {
                archive_error = Some(other);
                io::Error::other("not exported")
            }
        })
    });
    match archive_error {
        Some(error) => Err(failure(error)),
        None => written.map(|()| Outcome::Done).map_err(|error| Failure::write(&args.out, error)),
    }
}
