//! `koel store import`: stores files, equal chunks only once.
//!
//! A folder is imported with all files at any depth, in the order of their names. Symbolic links in
//! it, special files and the store's own folder are skipped. The name in the store is the path as
//! given, with slashes and without a leading `./`. A file whose path is not UTF-8 is skipped, with
//! an error. Each file is durable before the next one begins.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use koel_store::content::{Archive, ArchiveError, Chunking};
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped, parse_size, to_u64};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store import photos --db backups         all files of a folder
  koel store import --by-content dump.sql --db backups
  zcat dump.gz | koel store import - --name dump.sql --db backups

The store is created if it does not exist. A file replaces the stored file of the same name.
Chunks of a fixed size suit files that grow or change in place. With --by-content, equal parts are
also found after an insertion.
A file whose name is not UTF-8 is skipped; all others are imported, and the exit code is 2.")]
pub(crate) struct Args {
    /// Files and folders to import; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    database: Database,

    /// Name in the store, for a single file
    #[arg(long)]
    name: Option<String>,

    /// Chunk size in bytes; with --by-content, the average
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = parse_size)]
    #[arg(allow_negative_numbers = true)]
    chunk: u64,

    /// Let the content decide where chunks end, instead of a fixed size
    #[arg(long)]
    by_content: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// A file to import.
struct Source {
    /// The path, or "standard input".
    path: PathBuf,
    /// The length of a file; `None` for standard input.
    length: Option<u64>,
}

/// The files to import with their names, and the paths that are not UTF-8.
struct Sources {
    named: Vec<(String, Source)>,
    skipped: Vec<PathBuf>,
}

#[derive(Default)]
struct Total {
    files: u64,
    length: u64,
    chunks: u64,
    new_chunks: u64,
    new_bytes: u64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let db = &args.database;
    let chunking = chunking(args)?;
    let Sources { named, skipped } = sources(args)?;
    let archive = Archive::new(db.open_or_create()?);
    let length = named.iter().map(|(_, source)| source.length).sum();
    let started = Instant::now();
    let progress = Progress::start("importing", length, Stdout::Silent);
    let mut total = Total::default();
    for (name, source) in &named {
        let imported = if source.length.is_none() {
            archive.import(name, progress.meter(io::stdin().lock()), chunking)
        } else {
            let file = File::open(&source.path);
            let file = file.map_err(|error| Failure::read(&source.path, error))?;
            archive.import(name, progress.meter(file), chunking)
        };
        let imported = imported.map_err(|error| match error {
            ArchiveError::Read(error) => Failure::read(&source.path, error),
            other => db.archive_failure(other),
        })?;
        total.files += 1;
        total.length += imported.length;
        total.chunks += imported.chunks;
        total.new_chunks += imported.new_chunks;
        total.new_bytes += imported.new_bytes;
    }
    db.close(archive.into_store())?;
    drop(progress);
    // Skipped files are an error even if the reader closed the pipe.
    let printed = report(args, &total, started);
    report_skipped(&skipped)?;
    printed.map(|()| Outcome::Done)
}

/// Fails if files were skipped, and prints their names.
fn report_skipped(skipped: &[PathBuf]) -> Result<(), Failure> {
    if skipped.is_empty() {
        return Ok(());
    }
    for path in skipped {
        output::print_to_stderr(&format!("koel: {path:?} was skipped\n"))?;
    }
    Err(Failure::Usage(format!(
        "{} skipped because of names that are not UTF-8; rename them, or import each with --name",
        counted(skipped.len() as u64, "file")
    )))
}

fn report(args: &Args, total: &Total, started: Instant) -> Result<(), Failure> {
    let seconds = started.elapsed().as_secs_f64();
    let report = if args.json {
        output::json(&json!({
            "files": total.files,
            "bytes": total.length,
            "chunks": total.chunks,
            "new_chunks": total.new_chunks,
            "new_bytes": total.new_bytes,
            "seconds": seconds,
        }))
    } else {
        let rate = to_u64(total.length as f64 / seconds);
        output::table(&[
            ("files", grouped(total.files)),
            ("size", format!("{} ({}/s)", bytes(total.length), bytes(rate))),
            ("chunks", grouped(total.chunks)),
            ("new chunks", format!("{} ({})", grouped(total.new_chunks), bytes(total.new_bytes))),
        ])
    };
    output::print(&report)
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

fn sources(args: &Args) -> Result<Sources, Failure> {
    let files = files(args)?;
    let input = files.iter().any(|source| source.length.is_none());
    if let Some(name) = &args.name {
        let [only] = <[Source; 1]>::try_from(files)
            .map_err(|_| Failure::Usage("--name is for a single file; omit it".to_owned()))?;
        return Ok(Sources { named: vec![(name.clone(), only)], skipped: Vec::new() });
    }
    if input {
        return Err(Failure::Usage("standard input has no name; give one with --name".to_owned()));
    }
    let mut sources = Sources { named: Vec::new(), skipped: Vec::new() };
    for source in files {
        match name_of(&source.path) {
            Some(name) => sources.named.push((name, source)),
            None => sources.skipped.push(source.path),
        }
    }
    Ok(sources)
}

/// Every file argument, and every file in the folder arguments.
fn files(args: &Args) -> Result<Vec<Source>, Failure> {
    let mut files = Vec::new();
    for path in &args.files {
        if path == Path::new("-") {
            files.push(Source { path: "standard input".into(), length: None });
            continue;
        }
        let info = metadata(path)?;
        if info.is_dir() {
            walk(path, &args.database, &mut files)?;
        } else if args.database.contains(path) {
            return Err(Failure::Usage(format!(
                "{} is in the folder of the store and cannot be imported into it; omit it",
                path.display()
            )));
        } else {
            files.push(Source { path: path.clone(), length: Some(info.len()) });
        }
    }
    Ok(files)
}

fn metadata(path: &Path) -> Result<fs::Metadata, Failure> {
    fs::metadata(path).map_err(|error| Failure::read(path, error))
}

/// Adds all files below a folder, in the order of their names. Skips the folder of the store, which
/// grows during the import.
fn walk(folder: &Path, db: &Database, files: &mut Vec<Source>) -> Result<(), Failure> {
    if db.is_in(folder) {
        return Ok(());
    }
    let read = |error| Failure::read(folder, error);
    let mut entries =
        fs::read_dir(folder).map_err(read)?.collect::<Result<Vec<_>, _>>().map_err(read)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(read)?);
        if kind.is_dir() {
            walk(&path, db, files)?;
        } else if kind.is_file() {
            let length = Some(metadata(&path)?.len());
            files.push(Source { path, length });
        }
    }
    Ok(())
}

/// The path with slashes and without a leading `./`, if it is UTF-8.
fn name_of(path: &Path) -> Option<String> {
    let name = path.strip_prefix(".").unwrap_or(path).to_str()?;
    Some(if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() })
}
