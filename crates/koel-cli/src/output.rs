//! Writes results: filters to files, atomically; lines and reports to standard output.
//!
//! Replacing a file:
//! - A temporary file in the same folder is written, synced and renamed over the target.
//! - Readers see either the old file or the new one. A crash or a full disk leaves the old one.
//! - The permissions and the owner of the old file are kept.
//! - A symbolic link stays; the file that it points to is replaced or created.
//! - A target that is not a regular file, such as a pipe, is written directly.
//! - Another name of standard output, such as `/dev/stdout`, is treated as standard output.
//!
//! Cost: one fsync of the file and one of its folder.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};

use koel::CuckooFilter;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::identity::Identity;
use crate::input::Inputs;
pub(crate) use crate::warning::escape_controls;

const BUFFER: usize = 128 * 1024;
/// The longest chain of symbolic links to follow to a file that does not exist yet.
const MAX_LINKS: usize = 40;

/// Whether a path is standard output: `-`, or the file that standard output is redirected to.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
        || Identity::of(path).is_some_and(|file| Some(file) == Identity::of_stdout())
}

/// Refuses to print a filter on a terminal.
pub(crate) fn refuse_terminal(path: &Path) -> Result<(), Failure> {
    if is_stdout(path) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "a filter is binary and standard output is a terminal; name a file or redirect"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Writes a filter to a file or to standard output.
///
/// A closed pipe is an error here, because its reader has only a part of the filter.
pub(crate) fn write_filter(path: &Path, filter: &CuckooFilter) -> Result<(), Failure> {
    if is_stdout(path) {
        let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        let written = filter.write_to(|bytes| out.write_all(bytes)).and_then(|()| out.flush());
        return written.map_err(|error| Failure::write(Path::new("standard output"), error));
    }
    write_file(path, |sink| filter.write_to(|bytes| sink.write_all(bytes)))
        .map_err(|error| Failure::write(path, error))
}

/// Prints the report on a written file: on standard error if the file went to standard output.
pub(crate) fn report_on(output: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(output) {
        print_to_stderr(text)
    } else {
        print_after(&format!("{} was written", output.display()), text)
    }
}

/// Replaces a file by what `fill` writes. On an error the old file stays.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = resolve_links(path)?;
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
        copy_owner(&old, temporary.as_file());
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    sync_folder(folder)
}

/// The path at the end of all symbolic links, whether or not a file exists there.
pub(crate) fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Gives the new file the owner of the old one, as far as this process has the right to.
#[cfg(unix)]
fn copy_owner(old: &fs::Metadata, new: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};

    if fchown(new, Some(old.uid()), Some(old.gid())).is_err() {
        drop(fchown(new, None, Some(old.gid())));
    }
}

#[cfg(not(unix))]
fn copy_owner(_old: &fs::Metadata, _new: &File) {}

/// Creates a temporary file with the permissions of any new file; by default it would be private.
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

/// Makes the rename durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Buffered standard output. If the reader closes the pipe, the verb ends without a message.
pub(crate) struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    /// Whether to flush after each group of lines.
    flush_each_group: bool,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        Self { out, flush_each_group: false }
    }

    /// For the answers to `inputs`. Refuses an input that is also the output.
    ///
    /// Flushes after each group if an input is a pipe or the output is a terminal: the next line
    /// may take long to come.
    pub(crate) fn for_inputs(inputs: &Inputs) -> Result<Self, Failure> {
        inputs.refuse_own_output()?;
        Ok(Self {
            flush_each_group: inputs.has_stream() || io::stdout().is_terminal(),
            ..Self::new()
        })
    }

    /// Must be called after the answers to each group of lines.
    pub(crate) fn end_group(&mut self) -> Result<(), Failure> {
        if self.flush_each_group { self.out.flush().map_err(Failure::stdout) } else { Ok(()) }
    }

    /// Prints a key and its terminator.
    pub(crate) fn line(&mut self, key: &[u8], terminator: u8) -> Result<(), Failure> {
        self.raw(key)?;
        self.raw(&[terminator])
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::stdout)
    }

    /// Must be called at the end: otherwise a failed write goes unnoticed.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::stdout)
    }
}

/// Prints a text, such as a report, on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::stdout)
}

/// Prints the report of a verb that may have changed a file.
pub(crate) fn report_change(path: &Path, changed: bool, text: &str) -> Result<(), Failure> {
    let state = if changed { "was changed" } else { "is unchanged" };
    print_after(&format!("{} {state}", path.display()), text)
}

/// Prints a report on finished work. If that fails, the error says what was done.
fn print_after(done: &str, text: &str) -> Result<(), Failure> {
    print(text).map_err(|failure| match failure {
        Failure::Write { error, .. } => Failure::Unreported { done: done.to_owned(), error },
        other => other,
    })
}

/// Prints a text on standard error, where it does not mix with the results.
pub(crate) fn print_to_stderr(text: &str) -> Result<(), Failure> {
    io::stderr()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::write(Path::new("standard error"), error))
}

/// Formats names and values as a report, with the values in one column.
pub(crate) fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

/// Formats a JSON value as a report.
pub(crate) fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
