//! `koel store verify`: checks every record against its checksum and every file against its hash.

use koel_store::Damage;
use koel_store::content::{Archive, ArchiveVerifyReport};

use super::database::{Access, Database, Records};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store verify --db backups

Damage is listed on standard output, and so are files that changed while they were imported: their
bytes are those that were read, perhaps of several moments.
koel store import --checksum stores the damaged chunks of files again that are still on disk. After
that, or once damaged versions are removed, koel store gc drops the damage.

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
    let store = db.open(Access::Read)?;
    let checked = Progress::watch("verifying records", |seen| match &store {
        Records::Log(store) => store.verify(seen).map(|it| (it.records, it.bytes, it.damages)),
        Records::Ordered(store) => store.verify(seen).map(|it| (it.records, it.bytes, it.damages)),
    });
    let (records, read, damages) = checked.map_err(|error| db.failure(error))?;
    let files = match store {
        Records::Log(store) => Some(verified_files(&Archive::new(store), db)?),
        Records::Ordered(_) => None,
    };
    let mut report = Report::default();
    report.add("records", records, "records", format!("{} checked", grouped(records)));
    if files.is_none() {
        report.add("bytes", read, "on disk", format!("{} read", bytes(read)));
    }
    let damage = add_damage(&mut report, &damages, files.as_ref(), true);
    // Damage is an error even if the reader closed the pipe.
    let printed = output::print(&(report.text(args.json) + if args.json { "" } else { &damage }));
    let broken = files.as_ref().map(|files| files.broken.len() as u64);
    if damages.is_empty() && broken.unwrap_or(0) == 0 {
        return printed.map(|()| Outcome::Done);
    }
    let (folder, places) = (db.folder().display(), counted(damages.len() as u64, "damaged place"));
    Err(Failure::Broken(match broken {
        None => format!(
            "{folder}: {places}; restore the store from a copy, or use `koel store salvage`"
        ),
        Some(broken) => format!(
            "{folder}: {places} and {}; restore the store from a copy; or import the files again \
             with --checksum, which stores damaged chunks again, then drop the damage with `koel \
             store gc`; or use `koel store salvage`",
            counted(broken, "damaged file")
        ),
    }))
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

/// Adds the damage and the files of a store to a report. Returns a line for each damaged record,
/// each damaged file, and each that changed during its import.
pub(super) fn add_damage(
    report: &mut Report,
    damages: &[Damage],
    files: Option<&ArchiveVerifyReport>,
    has_changed: bool,
) -> String {
    let texts = damages.iter().map(ToString::to_string);
    report.json("damage", texts.clone().collect::<Vec<_>>());
    let damaged = |text: String| format!("DAMAGED  {}\n", output::escape_controls(&text));
    let mut lines: String = texts.map(damaged).collect();
    if let Some(files) = files {
        let intact = format!("{} intact ({})", grouped(files.sound), bytes(files.bytes));
        report.add("intact_files", files.sound, "files", intact).json("file_bytes", files.bytes);
        if has_changed {
            report.json("changed_files", files.changed.iter().cloned().collect::<Vec<_>>());
        }
        let broken = files.broken.iter();
        if files.missing > 0 {
            report.row("missing", grouped(files.missing));
        }
        report.json("missing_files", files.missing);
        report.json("damaged_files", broken.clone().map(|it| it.0.clone()).collect::<Vec<_>>());
        lines.extend(broken.map(|(name, what)| damaged(format!("{name}: {what}"))));
        let changed = |name| format!("CHANGED  {name}: while it was imported\n");
        lines.extend(files.changed.iter().map(changed));
    }
    lines
}
