//! `koel store export`: writes stored files and folders to disk, as they were imported.
//!
//! Each chunk is checked against its hash and each file against its own. A file appears only if all
//! are correct. Standard output gets only correct chunks; an error says that the output is
//! incomplete. Nothing is written outside the target. Cost: one read and two hashes of every byte.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use koel_store::content::{
    Archive, ArchiveError, Entry, Kind, Problem, RestoreOptions, RestoreReport, Target,
};

use super::database::{Access, Database};
use super::name;
use super::patterns::Patterns;
use crate::escape::escape;
use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, grouped};
use crate::report::Report;
use crate::{output, streams};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store export old.iso --db backups -o old.iso
  koel store export notes.tar --db backups -o - | tar x
  koel store export photos --db backups -o restored             a folder
  koel store export photos --version 3 --db backups -o old      as it was
  koel store export --db backups -o all --exclude '*.tmp'       everything

One name is written to FILE itself; several, or all, are written below it under their names.
Modes and times are restored, owners and groups with --owners only. Files that exist are replaced;
others stay. Folders that are read-only are made writable for the time of the export.
A pattern without a slash matches the name of a file or folder at any depth. One with a slash
matches the whole name, as koel store ls prints it; ** matches any number of folders. A folder
that matches stands for all that is in it.
A file appears only when every byte is checked. Symbolic links in the path FILE are followed, and
none below it.
If killed before, koel may leave a .koel-* file in the folder, which the next export removes.

Exit codes: 0 everything was restored, 1 something was not (named on standard error), 2 error.")]
pub(crate) struct Args {
    /// Names of files and folders, as koel store ls prints them; none for everything
    names: Vec<OsString>,

    #[command(flatten)]
    database: Database,

    /// Where to write; `-` is standard output, for a file
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,

    /// Take an older version; koel store ls --versions lists them
    #[arg(long, value_name = "NUMBER")]
    version: Option<u64>,

    /// Restore only what matches one of these patterns
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Leave out what matches one of these patterns
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Restore owners and groups, as the superuser
    #[arg(long)]
    owners: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let patterns = Patterns::new(&args.include, &args.exclude)?;
    let archive = Archive::new(db.log(Access::Read)?);
    let (entries, damage) = entries(args, &archive)?;
    if let [(name, entry)] = &entries[..]
        && args.names.len() == 1
        && let Kind::File(file) = &entry.kind
        && is_streamed(&args.out, entry)
    {
        let progress = Progress::start("exporting", Some(file.content.length), Stdout::Silent);
        return stream(args, &archive, name, entry, &progress);
    }
    let out = target(args, &entries)?;
    let options = RestoreOptions::default().owners(args.owners).skip(db.folder());
    let progress = Progress::start("exporting", None, Stdout::Silent);
    let mut total = RestoreReport::default();
    for (name, entry) in &entries {
        let single = args.names.len() == 1;
        let target = if single { Target::Path(&out) } else { Target::Below(&out) };
        let (select, count) =
            (&mut |path: &[u8], _: &Entry| patterns.select(path), &mut |n| progress.advance(n));
        let restored = archive.restore(name, entry, target, &options, select, count);
        add(&mut total, restored.map_err(|error| failure(args, error))?);
    }
    drop(progress);
    let finished = finish(args, &entries, &total);
    damage.map_or(finished, |damage| Err(args.database.archive_failure(damage)))
}

/// The entries to restore, with their names, and the damage that hides others.
type Found = (Vec<(Vec<u8>, Entry)>, Option<ArchiveError>);

fn entries(args: &Args, archive: &Archive) -> Result<Found, Failure> {
    let names = name::names(&args.names)?;
    let (restores_all, mut damage) = (names.is_empty(), None);
    let find = || -> Result<Vec<_>, ArchiveError> {
        let found = name::entries(archive, names, args.version)?.filter_map(|found| match found {
            Err(error) if restores_all => {
                damage = Some(error);
                None
            }
            found => Some(found),
        });
        found.collect()
    };
    let found = find().map_err(|error| args.database.archive_failure(error))?;
    Ok((found, damage))
}

/// Whether the bytes of a file are all that is restored: it came from a stream, or goes to one.
fn is_streamed(out: &Path, entry: &Entry) -> bool {
    let is_special = |it: fs::Metadata| !it.is_file() && !it.is_dir();
    entry.attributes.is_none() || output::is_stdout(out) || fs::metadata(out).is_ok_and(is_special)
}

/// Writes the bytes of a file.
fn stream(
    args: &Args,
    archive: &Archive,
    name: &[u8],
    entry: &Entry,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    if output::is_stdout(&args.out) {
        streams::require_stdout().map_err(Failure::stdout)?;
        let sink = progress.meter(io::stdout().lock());
        return match archive.export_entry(name, entry, sink) {
            Err(ArchiveError::Write(error)) => Err(Failure::stdout(error)),
            Err(error) => Err(failure(args, error)),
            Ok(_) => report_changed(name, entry),
        };
    }
    refuse_store(args)?;
    let mut archive_error = None;
    let written = output::write_file(&args.out, |sink| {
        let exported = archive.export_entry(name, entry, progress.meter(sink));
        exported.map(drop).map_err(|error| match error {
            ArchiveError::Write(error) => error,
            other => {
                archive_error = Some(other);
                io::Error::other("not exported")
            }
        })
    });
    match archive_error {
        Some(error) => Err(failure(args, error)),
        None => match written {
            Ok(()) => report_changed(name, entry),
            Err(error) => Err(Failure::write(&args.out, error)),
        },
    }
}

/// Says of a file whose bytes were written that it changed while it was imported.
fn report_changed(name: &[u8], entry: &Entry) -> Result<Outcome, Failure> {
    let changed = matches!(entry.kind, Kind::File(file) if file.changed_while_read);
    if changed {
        let what = "it changed while it was imported; its bytes may be of several moments";
        name::report_problems([(name, what)])?;
    }
    Ok(Outcome::some_if(!changed))
}

/// The path to restore at. For a file, links to it are resolved, so that they stay.
fn target(args: &Args, entries: &[(Vec<u8>, Entry)]) -> Result<PathBuf, Failure> {
    if output::is_stdout(&args.out) {
        return Err(Failure::Usage(
            "only the bytes of a single file go to standard output; give a folder with -o"
                .to_owned(),
        ));
    }
    refuse_store(args)?;
    match entries {
        [(_, entry)] if matches!(entry.kind, Kind::File(_)) && args.names.len() == 1 => {
            output::resolve_links(&args.out).map_err(|error| Failure::write(&args.out, error))
        }
        _ => Ok(args.out.clone()),
    }
}

fn refuse_store(args: &Args) -> Result<(), Failure> {
    if args.database.contains(&args.out) || args.database.is_in(&args.out) {
        let sentence = "is in the folder of the store; choose another folder";
        return Err(Failure::about(&args.out, sentence));
    }
    Ok(())
}

fn failure(args: &Args, error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Write(error) => Failure::write(&args.out, error),
        error => args.database.archive_failure(error),
    }
}

fn add(total: &mut RestoreReport, report: RestoreReport) {
    total.files += report.files;
    total.folders += report.folders;
    total.links += report.links;
    total.length += report.length;
    total.other_owners += report.other_owners;
    total.missing = total.missing.saturating_add(report.missing);
    total.problems.extend(report.problems);
}

/// Reports what was restored.
fn finish(
    args: &Args,
    entries: &[(Vec<u8>, Entry)],
    total: &RestoreReport,
) -> Result<Outcome, Failure> {
    let count = total.files + total.folders + total.links;
    if let ([(_, entry)], [Problem { name, what, .. }], 0) = (entries, &total.problems[..], count)
        && !matches!(entry.kind, Kind::Folder(_))
    {
        let db = args.database.folder().display();
        return Err(Failure::Broken(format!("{db}: `{}` was not exported: {what}", escape(name))));
    }
    let printed = print_report(args, entries, total);
    let problems = total.problems.iter();
    name::report_problems(problems.map(|it| (&it.name[..], &it.what[..])))?;
    report_owners(total.other_owners)?;
    if count == 0 && total.problems.is_empty() && !(entries.is_empty() && args.include.is_empty()) {
        output::print_to_stderr("koel: no name matches the patterns\n")?;
        return Ok(Outcome::None);
    }
    printed.map(|()| Outcome::some_if(total.problems.is_empty()))
}

/// Says once that owners are not those of the import.
fn report_owners(others: u64) -> Result<(), Failure> {
    if others == 0 {
        return Ok(());
    }
    let others = grouped(others);
    output::print_to_stderr(&format!(
        "koel: {others} of the restored files, folders and links got another owner or group than \
         imported; --owners restores them, as the superuser\n"
    ))
}

fn print_report(
    args: &Args,
    entries: &[(Vec<u8>, Entry)],
    total: &RestoreReport,
) -> Result<(), Failure> {
    // As `cp`, a single file is written without a word.
    if !args.json && matches!(entries, [(_, entry)] if !matches!(entry.kind, Kind::Folder(_))) {
        return Ok(());
    }
    let files = format!("{} ({})", grouped(total.files), bytes(total.length));
    let mut report = Report::default();
    report
        .add("files", total.files, "files", files)
        .add("folders", total.folders, "folders", grouped(total.folders))
        .add("links", total.links, "links", grouped(total.links))
        .json("bytes", total.length)
        .json("other_owners", total.other_owners);
    name::add_problems(&mut report, "not_restored", "not restored", &total.problems);
    let missing = if total.missing > 0 { grouped(total.missing) } else { String::new() };
    report.add("missing", total.missing, "missing", missing);
    report.print(args.json).map(drop)
}
