//! `koel store import`: stores files, equal chunks only once.
//!
//! Each argument becomes a new version of its name: a file, or a folder with all that is in it.
//! The name is the path as given, without `/` or `..` at its start; for `.` it is the name of the
//! folder. What was imported before keeps its name, however its path is given. Files whose size,
//! times and inode are those of the last version are not read. All versions become durable
//! together, at the end; after a failure, what was written is taken back.
//!
//! What cannot be read or kept is named on standard error, and the rest goes on. The folder of the
//! store is left out.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use koel_store::Durability;
use koel_store::content::{
    Archive, ArchiveError, Chunking, Problem, Selection, TreeOptions, TreeReport, normalize,
};
use serde_json::Value;

use super::database::{Access, Database};
use super::name;
use super::patterns::Patterns;
use crate::escape::escape;
use crate::failure::{Failure, Outcome, describe};
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped, parse_size, to_u64};
use crate::report::Report;
use crate::{input, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store import photos --db backups         a folder with all that is in it
  koel store import photos --db backups         again: a new version of it
  koel store import --by-content --zstd dump.sql --db backups
  koel store import home --exclude .cache --exclude '*.tmp' --db backups
  zcat dump.gz | koel store import - --name dump.sql --db backups

The store is created if it does not exist. Older versions stay until koel store rm removes them.
The name is the path as given. A folder that was imported before keeps the name that it has.
Files, folders, symbolic links, hard links, holes, modes, owners and times are kept. FIFOs, devices
and extended attributes are not. Sockets hold nothing and are left out.
A pattern of --exclude without a slash matches the name of a file or folder at any depth; one with a
slash matches the whole name, as koel store ls prints it.
A file that changes while it is read is read again; if it changes again, koel store ls marks it.
If an import fails, nothing of it stays.
A file is not read again if its size, times and inode are those of the last version, and its chunks
are in the store: of what is skipped, the first 64 MiB and one of 128 further chunks are checked. If
one is damaged, all are checked, and damaged chunks are stored again. --checksum checks all.
Chunks of a fixed size suit files that grow or change in place. With --by-content, equal parts are
also found after an insertion.

Exit codes: 0 everything is kept, 1 something is not (named on standard error), 2 error.")]
pub(crate) struct Args {
    /// Files and folders to import; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    database: Database,

    /// Name in the store, for a single file or folder
    #[arg(long)]
    name: Option<OsString>,

    /// Chunk size in bytes; with --by-content, the average
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = parse_size)]
    #[arg(allow_negative_numbers = true)]
    chunk: u64,

    /// Let the content decide where chunks end, instead of a fixed size
    #[arg(long)]
    by_content: bool,

    /// Compress new chunks with zstd, at a level of 1 (fastest) to 19 (smallest)
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "3", value_parser = clap::value_parser!(i32).range(1..=19))]
    zstd: Option<i32>,

    /// Read all files, also unchanged ones, and store damaged chunks again
    #[arg(long)]
    checksum: bool,

    /// Leave out files and folders that match one of these patterns
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// What to import: a name, a path, and whether it is a file or a folder. What is neither is a
/// stream, such as standard input.
type Source<'a> = (Vec<u8>, &'a Path, bool);

/// The sum of all reports.
#[derive(Default)]
struct Total {
    report: TreeReport,
    versions: Vec<Value>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let chunking = chunking(args)?;
    let patterns = Patterns::new(&[], &args.exclude)?;
    let sources = sources(args)?;
    let mut archive = Archive::new(db.log(Access::Create)?);
    if let Some(level) = args.zstd {
        archive = archive.compressed(level);
    }
    let options = TreeOptions::default()
        .chunking(chunking)
        .durability(Durability::None)
        .read_all(args.checksum)
        .exclude(move |name| patterns.select(name) == Selection::Skip)
        .skip(db.folder());
    let started = Instant::now();
    let progress = Progress::start("importing", None, Stdout::Silent);
    let mut total = Total::default();
    let imported = sources.iter().try_for_each(|(name, path, is_tree)| {
        if *is_tree {
            let name = &name_in(&archive, args, name, path)?;
            let read = &mut |count| progress.advance(count);
            match archive.import_tree(name, path, &options, read) {
                Ok(report) => total.add(name, report),
                Err(ArchiveError::Read(error)) => total.add_unreadable(name, &error),
                Err(error) => return Err(db.archive_failure(error)),
            }
            return Ok(());
        }
        let stream = progress.meter(input::open_stream(path)?.0);
        match archive.import(name, stream, chunking) {
            Ok(report) => total.add_stream(report),
            Err(ArchiveError::Read(error)) => return Err(Failure::read(path, error)),
            Err(other) => return Err(db.archive_failure(other)),
        }
        Ok(())
    });
    drop(progress);
    if let Err(failure) = imported {
        // What was written leads to nothing. If it cannot be taken back, `gc` finds it.
        archive.abandon().unwrap_or_default();
        return Err(failure);
    }
    db.close_changed(archive.into_store())?;
    let problems = &total.report.problems;
    // What is not kept is told even if the reader closed the pipe.
    let printed = report(args, &total, started);
    let sockets = total.report.sockets.iter().map(|name| (&name[..], "a socket is left out"));
    name::report_problems(sockets)?;
    name::report_problems(problems.iter().map(|it| (&it.name[..], &it.what[..])))?;
    report_repaired(db, total.report.repaired)?;
    printed.map(|_| Outcome::some_if(problems.is_empty()))
}

/// Says that the store had damage, which this import knows of.
fn report_repaired(db: &Database, repaired: u64) -> Result<(), Failure> {
    if repaired == 0 {
        return Ok(());
    }
    let chunks = counted(repaired, "damaged chunk");
    let what = format!("stored {chunks} again; check the disk, and run `koel store verify`");
    output::say_of(db.folder(), &what)
}

impl Total {
    fn add(&mut self, name: &[u8], report: TreeReport) {
        let total = &mut self.report;
        total.files += report.files;
        total.folders += report.folders;
        total.links += report.links;
        total.length += report.length;
        total.unchanged += report.unchanged;
        total.chunks += report.chunks;
        total.new_chunks += report.new_chunks;
        total.new_bytes += report.new_bytes;
        total.repaired += report.repaired;
        total.excluded += report.excluded;
        total.sockets.extend(report.sockets);
        total.problems.extend(report.problems);
        let mut version = name::json_of(name);
        version["version"] = report.version.into();
        self.versions.push(version);
    }

    fn add_unreadable(&mut self, name: &[u8], error: &io::Error) {
        let what = format!("it cannot be read: {}", describe(error));
        self.report.problems.push(Problem::new(name, what));
    }

    fn add_stream(&mut self, report: koel_store::content::ImportReport) {
        self.report.files += 1;
        self.report.length += report.length;
        self.report.chunks += report.chunks;
        self.report.new_chunks += report.new_chunks;
        self.report.new_bytes += report.new_bytes;
        self.report.repaired += report.repaired;
    }
}

/// The name of a file or a folder in the store: that of its last import, if no other is asked for.
fn name_in(archive: &Archive, args: &Args, name: &[u8], path: &Path) -> Result<Vec<u8>, Failure> {
    let Some(real) = path.canonicalize().ok().filter(|_| args.name.is_none()) else {
        return Ok(name.to_owned());
    };
    let before =
        archive.name_of_source(&real).map_err(|error| args.database.archive_failure(error))?;
    let Some(before) = before.filter(|before| before != name) else { return Ok(name.to_owned()) };
    let name = format!("imported as \"{}\", its name in the store", escape(&before));
    output::say_of(path, &format!("{name}; --name gives another"))?;
    Ok(before)
}

fn report(args: &Args, total: &Total, started: Instant) -> Result<Outcome, Failure> {
    let seconds = started.elapsed().as_secs_f64();
    let tree = &total.report;
    let rate = bytes(to_u64(tree.length as f64 / seconds));
    let files = format!("{} ({} unchanged)", grouped(tree.files), grouped(tree.unchanged));
    let new_chunks = format!("{} ({})", grouped(tree.new_chunks), bytes(tree.new_bytes));
    let excluded = if tree.excluded > 0 { grouped(tree.excluded) } else { String::new() };
    let sockets: Vec<_> = tree.sockets.iter().map(|name| name::json_of(name)).collect();
    let mut report = Report::default();
    report
        .json("versions", total.versions.clone())
        .add("files", tree.files, "files", files)
        .add("folders", tree.folders, "folders", grouped(tree.folders))
        .add("links", tree.links, "links", grouped(tree.links))
        .add("bytes", tree.length, "size", format!("{} ({rate}/s)", bytes(tree.length)))
        .json("unchanged_files", tree.unchanged)
        .json("chunks", tree.chunks)
        .add("new_chunks", tree.new_chunks, "new chunks", new_chunks)
        .json("new_bytes", tree.new_bytes)
        .json("repaired_chunks", tree.repaired)
        .add("excluded", tree.excluded, "excluded", excluded)
        .json("sockets", sockets);
    name::add_problems(&mut report, "not_kept", "not kept", &tree.problems);
    report.json("seconds", seconds);
    report.print(args.json)
}

fn chunking(args: &Args) -> Result<Chunking, Failure> {
    let size = usize::try_from(args.chunk).unwrap_or(usize::MAX);
    let chunking = if args.by_content { Chunking::ByContent(size) } else { Chunking::Fixed(size) };
    if chunking.is_valid() {
        return Ok(chunking);
    }
    let limits = if args.by_content { "1K to 4M" } else { "512 to 16M" };
    Err(Failure::Usage(format!("chunks cannot have {size} bytes; use a --chunk of {limits}")))
}

/// Every argument with its name.
fn sources(args: &Args) -> Result<Vec<Source<'_>>, Failure> {
    let kinds = args.files.iter().map(|path| is_tree(args, path));
    let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
    let all = args.files.iter().map(|path| &**path).zip(kinds);
    let Some(name) = &args.name else {
        return all.map(|(path, is_tree)| Ok((name_of(path, is_tree)?, path, is_tree))).collect();
    };
    let name = name::name(name)?;
    if args.files.len() > 1 {
        return Err(Failure::Usage("--name is for a single file or folder; omit it".to_owned()));
    }
    Ok(all.map(|(path, is_tree)| (name.clone(), path, is_tree)).collect())
}

fn is_tree(args: &Args, path: &Path) -> Result<bool, Failure> {
    if path == Path::new("-") {
        return Ok(false);
    }
    let info = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
            return Err(Failure::read(path, error));
        }
        // The import keeps a link that leads to nothing, and reports what cannot be read.
        Err(_) => return Ok(true),
        Ok(info) => info,
    };
    if args.database.is_in(path) || (info.is_file() && args.database.contains(path)) {
        let sentence = "is in the folder of the store and cannot be imported into it; omit it";
        return Err(Failure::about(path, sentence));
    }
    Ok(info.is_file() || info.is_dir())
}

/// The path without `/`, `./` and `../` at its start; for a folder such as `.`, its own name.
fn name_of(path: &Path, is_tree: bool) -> Result<Vec<u8>, Failure> {
    if !is_tree {
        return Err(Failure::Usage("a stream has no name; give one with --name".to_owned()));
    }
    let name = normalize(path.as_os_str().as_encoded_bytes());
    if !name.is_empty() {
        return Ok(name);
    }
    let real = path.canonicalize().map_err(|error| Failure::read(path, error))?;
    let name = real
        .file_name()
        .ok_or_else(|| Failure::about(path, "has no name; give one with --name"))?;
    Ok(name.as_encoded_bytes().to_owned())
}
