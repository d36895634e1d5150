//! Where results go: filters into files, atomically; lines and reports to standard output.
//!
//! A file is written beside its target, flushed to the disk and renamed over it, so a reader sees the old file or the new one and never
//! half of either, and a crash or a full disk leaves the old one. Permissions and owner of a replaced file are kept; a symbolic link stays and
//! its target is replaced, or made. What is standard output under another name (`/dev/stdout`) is that, and a target that is no regular file (a pipe) is written
//! directly. Cost: one fsync of the file and one of its folder.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};

use koel::CuckooFilter;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::identity::Identity;
use crate::input::Inputs;

const BUFFER: usize = 128 * 1024;
/// Symbolic links to a file that is not there yet, one leading to the other.
const MOST_LINKS: usize = 40;

/// Whether an output is standard output: `-`, or another name of what that goes to.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
        || Identity::of(path).is_some_and(|file| Some(file) == Identity::of_stdout())
}

/// Refuses to fill a screen with a filter's bytes.
pub(crate) fn refuse_terminal(path: &Path) -> Result<(), Failure> {
    if is_stdout(path) && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "a filter is not text for a terminal; name a file, or redirect the output".to_owned(),
        ));
    }
    Ok(())
}

/// Writes a filter to a file, or to standard output. A reader who goes away has half of it, so that is an error here.
pub(crate) fn write_filter(path: &Path, filter: &CuckooFilter) -> Result<(), Failure> {
    if is_stdout(path) {
        let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        let written = filter.write_to(|bytes| out.write_all(bytes)).and_then(|()| out.flush());
        return written.map_err(|error| Failure::write(Path::new("standard output"), error));
    }
    write_file(path, |sink| filter.write_to(|bytes| sink.write_all(bytes)))
        .map_err(|error| Failure::write(path, error))
}

/// Prints the report on an output: beside it where it has standard output for itself.
pub(crate) fn report_on(output: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(output) {
        print_aside(text)
    } else {
        print_after(&format!("{} is written", output.display()), text)
    }
}

/// Replaces a file by what `fill` writes, or leaves it as it is.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = target_of(path)?;
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
        give_to_owner_of(&old, temporary.as_file());
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target)?;
    sync_folder(folder)
}

/// Where a name leads to, through all symbolic links, whether a file is there or not.
pub(crate) fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A file that is replaced stays its owner's, as far as whoever replaces it may say so.
#[cfg(unix)]
fn give_to_owner_of(old: &fs::Metadata, new: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};

    if fchown(new, Some(old.uid()), Some(old.gid())).is_err() {
        drop(fchown(new, None, Some(old.gid())));
    }
}

#[cfg(not(unix))]
fn give_to_owner_of(_old: &fs::Metadata, _new: &File) {}

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
    /// Whether what was printed must not wait for more.
    prompt: bool,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        Self { out, prompt: false }
    }

    /// For the answers to `inputs`, which must not be where they go to: prompt ones where these come from a pipe or go to a terminal, since the next line may be long in coming.
    pub(crate) fn answering(inputs: &Inputs) -> Result<Self, Failure> {
        inputs.refuse_own_output()?;
        Ok(Self { prompt: inputs.has_stream() || io::stdout().is_terminal(), ..Self::new() })
    }

    /// Called when all lines that have come are answered.
    pub(crate) fn caught_up(&mut self) -> Result<(), Failure> {
        if self.prompt { self.out.flush().map_err(Failure::stdout) } else { Ok(()) }
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

/// Prints a whole text, such as a report.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::stdout)
}

/// Prints the report on a file that was changed, or was not.
pub(crate) fn report_change(path: &Path, changed: bool, text: &str) -> Result<(), Failure> {
    let state = if changed { "is changed" } else { "is unchanged" };
    print_after(&format!("{} {state}", path.display()), text)
}

/// Prints a report on what cannot be undone: where it cannot be printed, the error says that it is done.
fn print_after(done: &str, text: &str) -> Result<(), Failure> {
    print(text).map_err(|failure| match failure {
        Failure::Write { error, .. } => Failure::Unreported { done: done.to_owned(), error },
        other => other,
    })
}

/// Prints a report beside a result that has standard output for itself.
pub(crate) fn print_aside(text: &str) -> Result<(), Failure> {
    io::stderr()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::write(Path::new("standard error"), error))
}

/// A text that neither ends its line nor speaks to the terminal, whatever names are in it.
pub(crate) fn in_one_line(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escaped).collect()
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
