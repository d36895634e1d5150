//! `koel store import`: files in, each chunk stored once.
//!
//! A folder stands for all files in it, at any depth, in the order of their names; a symbolic link in it is left out, and so is what is
//! neither a file nor a folder, and the store's own folder. The name in the store is the path as given, with slashes and without a leading `./`; a file whose path is
//! not UTF-8 is left out, and said to be. Each file is durable when the next one begins.
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
use crate::quantity::{bytes, grouped, parse_size, to_u64};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file whose name is in the store takes its place. A name that is not UTF-8 is left out, and all others are
imported: the exit code is 2 then. Chunks of a fixed size suit files that grow or change in
place; --by-content finds equal parts also behind an insertion.

Examples:
  koel store import photos --db backups         every file of a folder
  koel store import --by-content dump.sql --db backups
  zcat dump.gz | koel store import - --name dump.sql --db backups")]
pub(crate) struct Args {
    /// Files and folders; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    database: Database,

    /// The name in the store, for a single file
    #[arg(long)]
    name: Option<String>,

    /// Bytes of a chunk, with --by-content on average
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = parse_size)]
    chunk: u64,

    /// Cut where the content says, not at multiples of a size
    #[arg(long)]
    by_content: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// What is read.
struct Source {
    /// Where, or that it is standard input.
    path: PathBuf,
    /// Of a file; nobody knows that of standard input.
    length: Option<u64>,
}

/// What is imported, each with its name, and the paths that are no names.
struct Sources {
    named: Vec<(String, Source)>,
    left_out: Vec<PathBuf>,
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
    let Sources { named, left_out } = sources(args)?;
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
    // A reader that went away does not make it complete.
    let printed = report(args, &total, started);
    refuse_to_be_silent_on(&left_out)?;
    printed.map(|()| Outcome::Done)
}

/// Names every file that was left out.
fn refuse_to_be_silent_on(left_out: &[PathBuf]) -> Result<(), Failure> {
    if left_out.is_empty() {
        return Ok(());
    }
    for path in left_out {
        output::print_aside(&format!("koel: {path:?} is left out\n"))?;
    }
    Err(Failure::Usage(format!(
        "files left out because their names are not UTF-8: {}; rename them, or import each alone with --name",
        left_out.len()
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
            ("bytes", format!("{}, {} a second", bytes(total.length), bytes(rate))),
            ("chunks", grouped(total.chunks)),
            ("new", format!("{} chunks, {}", grouped(total.new_chunks), bytes(total.new_bytes))),
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
    Err(Failure::Usage(format!("a chunk of {size} bytes is not possible; choose {limits}")))
}

fn sources(args: &Args) -> Result<Sources, Failure> {
    let files = files(args)?;
    let input = files.iter().any(|source| source.length.is_none());
    if let Some(name) = &args.name {
        let [only] = <[Source; 1]>::try_from(files)
            .map_err(|_| Failure::Usage("--name is for a single file; leave it out".to_owned()))?;
        return Ok(Sources { named: vec![(name.clone(), only)], left_out: Vec::new() });
    }
    if input {
        return Err(Failure::Usage("standard input has no name; give one with --name".to_owned()));
    }
    let mut sources = Sources { named: Vec::new(), left_out: Vec::new() };
    for source in files {
        match name_of(&source.path) {
            Some(name) => sources.named.push((name, source)),
            None => sources.left_out.push(source.path),
        }
    }
    Ok(sources)
}

/// Every file that was named, or is in a folder that was.
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
        } else if args.database.has(path) {
            return Err(Failure::Usage(format!(
                "{} is in the folder of the store, which grows while it is read; leave it out",
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

/// All files below a folder, in the order of their names. The store itself is left out: it grows while it is read.
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

/// The path with slashes, without a leading `./`, if it is UTF-8.
fn name_of(path: &Path) -> Option<String> {
    let name = path.strip_prefix(".").unwrap_or(path).to_str()?;
    Some(if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() })
}
