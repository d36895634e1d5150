//! Where results go: filters into files, atomically; lines and reports to standard output.
//!
//! A file is written beside its target, flushed to the disk and renamed over it, so a reader sees the old file or the new one and never
//! half of either, and a crash or a full disk leaves the old one. Permissions of a replaced file are kept; a symbolic link stays and
//! its target is replaced. A target that is no regular file (`/dev/stdout`, a pipe) is written directly. Cost: one fsync of the file
//! and one of its folder.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Stdout, StdoutLock, Write};
use std::path::Path;

use koel::CuckooFilter;
use tempfile::NamedTempFile;

use crate::failure::Failure;

const BUFFER: usize = 128 * 1024;

/// Refuses to fill a screen with a filter's bytes.
pub(crate) fn refuse_terminal(path: &Path) -> Result<(), Failure> {
    if path == Path::new("-") && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "a filter is not text for a terminal; name a file, or redirect the output".to_owned(),
        ));
    }
    Ok(())
}

/// Writes a filter to a file, or to standard output when the name is `-`.
pub(crate) fn write_filter(path: &Path, filter: &CuckooFilter) -> Result<(), Failure> {
    if path == Path::new("-") {
        let mut out = Lines::new();
        return filter.write_to(|bytes| out.raw(bytes)).and_then(|()| out.finish());
    }
    write_file(path, |sink| filter.write_to(|bytes| sink.write_all(bytes)))
        .map_err(|error| Failure::write(path, error))
}

/// Replaces a file by what `fill` writes, or leaves it as it is.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let mut sink = BufWriter::with_capacity(BUFFER, File::options().write(true).open(&target)?);
        return fill(&mut sink).and_then(|()| sink.flush());
    }
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let temporary = create_in(folder).map_err(|error| error.kind())?;
    let mut sink = BufWriter::with_capacity(BUFFER, temporary);
    fill(&mut sink)?;
    let temporary = sink.into_inner()?;
    if let Some(old) = old {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    sync_folder(folder)
}

/// A temporary file with the permissions that any new file gets; tempfile alone would make it private.
#[cfg(unix)]
fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;

    let mode = fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".koel-").permissions(mode).tempfile_in(folder)
}

#[cfg(not(unix))]
fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".koel-").tempfile_in(folder)
}

/// Makes the rename itself durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Buffered standard output; a reader that goes away ends the verb without a word.
pub(crate) struct Lines {
    out: BufWriter<StdoutLock<'static>>,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self { out: BufWriter::with_capacity(BUFFER, io::stdout().lock()) }
    }

    /// Prints a key and its terminator.
    pub(crate) fn line(&mut self, key: &[u8], terminator: u8) -> Result<(), Failure> {
        self.raw(key)?;
        self.raw(&[terminator])
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::stdout)
    }

    /// Must be called: a failed write that nobody heard of would be a wrong answer.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::stdout)
    }
}

/// Prints a report: a few lines of text or JSON.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out: Stdout = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::stdout)
}

/// Prints a report beside a result that has standard output for itself.
pub(crate) fn print_aside(text: &str) -> Result<(), Failure> {
    io::stderr()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::write(Path::new("standard error"), error))
}

/// Names and values as a report, the values in one column.
pub(crate) fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

/// A JSON value as a report.
pub(crate) fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
