//! `koel store export`: a file as it was imported, or none at all.
//!
//! Each chunk is checked against its hash and the whole against the file's, and only then does the target appear. To standard output only
//! right chunks go, and an error says that what came is not all of it. Cost: one read and two hashes of every byte.
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

The file appears when all of it is right and on the disk. Who kills the command before that may find a file
.koel-* in the same folder, and remove it.")]
pub(crate) struct Args {
    /// The name, as `koel store ls` prints it
    name: String,

    #[command(flatten)]
    database: Database,

    /// The file to write; `-` is standard output
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
    if db.has(&args.out) {
        return Err(Failure::Usage(format!(
            "{} would be among the files of the store; choose another folder",
            args.out.display()
        )));
    }
    let mut refused = None;
    let written = output::write_file(&args.out, |sink| {
        archive.export(&args.name, progress.meter(sink)).map(drop).map_err(|error| match error {
            ArchiveError::Write(error) => error,
            other => {
                refused = Some(other);
                io::Error::other("not exported")
            }
        })
    });
    match refused {
        Some(error) => Err(failure(error)),
        None => written.map(|()| Outcome::Done).map_err(|error| Failure::write(&args.out, error)),
    }
}
