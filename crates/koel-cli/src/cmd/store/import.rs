//! `koel store import`: files in, each chunk stored once.
//!
//! A folder stands for all files in it, at any depth, in the order of their names; a symbolic link in it is left out, and so is what is
//! neither a file nor a folder, and the store's own folder. The name in the store is the path as given, with slashes and without a leading `./`. Each file is durable
//! when the next one begins.
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
A file whose name is in the store takes its place. Chunks of a fixed size suit files that grow or change in
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

/// Where a file is and what it will be called.
struct Source {
    path: PathBuf,
    name: String,
    length: u64,
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
    let sources = sources(args)?;
    let archive = Archive::new(db.open_or_create()?);
    let known = sources.iter().all(|source| source.path != Path::new("-"));
    let length = known.then(|| sources.iter().map(|source| source.length).sum());
    let started = Instant::now();
    let progress = Progress::start("importing", length, Stdout::Silent);
    let mut total = Total::default();
    for source in &sources {
        let imported = if source.path == Path::new("-") {
            archive.import(&source.name, progress.meter(io::stdin().lock()), chunking)
        } else {
            let file = File::open(&source.path);
            let file = file.map_err(|error| Failure::read(&source.path, error))?;
            archive.import(&source.name, progress.meter(file), chunking)
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
    report(args, &total, started)?;
    Ok(Outcome::Done)
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

fn sources(args: &Args) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in &args.files {
        let input = path == Path::new("-");
        let info = if input { None } else { Some(metadata(path)?) };
        match info {
            Some(info) if info.is_dir() => walk(path, &args.database, &mut sources)?,
            info => sources.push(Source {
                name: if input && args.name.is_some() { String::new() } else { name_of(path)? },
                path: path.clone(),
                length: info.map_or(0, |info| info.len()),
            }),
        }
    }
    match (&args.name, &mut sources[..]) {
        (Some(name), [only]) => only.name.clone_from(name),
        (Some(_), _) => {
            return Err(Failure::Usage("--name is for a single file; leave it out".to_owned()));
        }
        (None, _) if args.files.iter().any(|path| path == Path::new("-")) => {
            return Err(Failure::Usage(
                "standard input has no name; give one with --name".to_owned(),
            ));
        }
        _ => {}
    }
    Ok(sources)
}

fn metadata(path: &Path) -> Result<fs::Metadata, Failure> {
    fs::metadata(path).map_err(|error| Failure::read(path, error))
}

/// All files below a folder, in the order of their names. The store itself is left out: it grows while it is read.
fn walk(folder: &Path, db: &Database, sources: &mut Vec<Source>) -> Result<(), Failure> {
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
            walk(&path, db, sources)?;
        } else if kind.is_file() {
            let length = metadata(&path)?.len();
            sources.push(Source { name: name_of(&path)?, path, length });
        }
    }
    Ok(())
}

/// The path with slashes, without a leading `./`.
fn name_of(path: &Path) -> Result<String, Failure> {
    let plain = path.strip_prefix(".").unwrap_or(path);
    let name = plain.to_str().ok_or_else(|| {
        Failure::Usage(format!(
            "the name {} is not UTF-8; rename it, or import it alone with --name",
            path.display()
        ))
    })?;
    Ok(if cfg!(windows) { name.replace('\\', "/") } else { name.to_owned() })
}
