//! Writes results: filters to files, atomically; lines and reports to standard output.
//!
//! What a path may name, and what is done then:
//! - A regular file, or nothing yet: a new file replaces it in one step ([`Replacement`]).
//! - A symbolic link: it stays; the file that it points to is replaced or created.
//! - A pipe, a device or an open descriptor, such as `>(gzip > x.gz)`: it is written directly.
//! - Another name of standard output, such as `/dev/stdout`: treated as standard output.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};

use koel::file::{Readers, Replacement, folder_of};

use crate::failure::{Failure, Outcome};
use crate::identity::{self, Identity};
use crate::input::Inputs;
use crate::streams;
pub(crate) use crate::streams::escape_controls;

const BUFFER: usize = 128 * 1024;

/// Whether a path is standard output: `-`, or the file that standard output is redirected to.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
        || Identity::of(path).is_some_and(|file| Some(file) == Identity::of_stdout())
}

/// Writes a filter to a file or to standard output.
///
/// A closed pipe is an error here, because its reader has only a part of the filter.
pub(crate) fn write_filter(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if is_stdout(path) {
        let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
        let written = streams::require_stdout().and_then(|()| fill(&mut out));
        let written = written.and_then(|()| out.flush());
        return written.map_err(|error| Failure::write(Path::new("standard output"), error));
    }
    write(path, readers, fill).map(drop).map_err(|error| Failure::write(path, error))
}

/// Prints the report on a written file: on standard error if the file went to standard output.
pub(crate) fn report_on(output: &Path, text: &str) -> Result<Outcome, Failure> {
    if is_stdout(output) {
        return print_to_stderr(text).map(|()| Outcome::Done);
    }
    print_after(&format!("{} was written", output.display()), text)
}

/// Writes a file: replaces it by what `fill` writes, or writes directly to what is not a file.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    write(path, Readers::Usual, fill).map(drop)
}

/// [`write_file`], for these readers. Returns the new file, locked, if there is one.
pub(crate) fn write(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Option<File>> {
    match open_direct(path)? {
        Some(file) => {
            let mut sink = BufWriter::with_capacity(BUFFER, file);
            fill(&mut sink).and_then(|()| sink.flush()).map(|()| None)
        }
        None => {
            let mut new = Replacement::of(&resolve_links(path)?)?;
            fill(&mut new)?;
            new.finish(readers).map(Some)
        }
    }
}

/// Removes what killed processes have left in the folder of a file to be replaced. Warns if the
/// file has other names, which will keep the old content.
pub(crate) fn before_replacing(path: &Path) -> Result<(), Failure> {
    let target = resolve_links(path).map_err(|error| Failure::write(path, error))?;
    koel_store::content::replace::sweep(folder_of(&target));
    match Identity::names_of(&target) {
        0 | 1 => Ok(()),
        // Names of a folder are itself and the folders in it.
        _ if target.is_dir() => Ok(()),
        names => print_to_stderr(&format!(
            "koel: {} has {names} names (hard links); the other names keep the old content\n",
            escape_controls(&path.display().to_string())
        )),
    }
}

/// Opens a pipe, a device or a descriptor. `None` if the path names a regular file or nothing.
fn open_direct(path: &Path) -> io::Result<Option<File>> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    if metadata.is_file() && !identity::is_descriptor(path) {
        return Ok(None);
    }
    // Appends, because a file opened by the name of its descriptor has a position of its own.
    File::options().append(true).open(path).map(Some)
}

/// The path at the end of all symbolic links, whether or not a file exists there.
pub(crate) fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    // The link may be one of the folders of a later path.
    let end = identity::chain(path).last().filter(|end| !end.is_symlink());
    end.ok_or_else(|| io::Error::other("too many symbolic links"))
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

    /// For the answers to `inputs`, flushed after each group whatever the inputs are.
    pub(crate) fn flushing(inputs: &Inputs) -> Result<Self, Failure> {
        Ok(Self { flush_each_group: true, ..Self::for_inputs(inputs)? })
    }

    /// Must be called after the answers to each group of lines. Returns whether all are written.
    pub(crate) fn end_group(&mut self) -> Result<bool, Failure> {
        if self.flush_each_group { self.flush() } else { Ok(false) }
    }

    /// Writes what is in the buffer. Returns true.
    pub(crate) fn flush(&mut self) -> Result<bool, Failure> {
        self.out.flush().map(|()| true).map_err(Failure::stdout)
    }

    /// Prints a key and its terminator.
    pub(crate) fn line(&mut self, key: &[u8], terminator: u8) -> Result<(), Failure> {
        self.raw(key)?;
        self.raw(&[terminator])
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        streams::require_stdout().and_then(|()| self.out.write_all(bytes)).map_err(Failure::stdout)
    }

    /// Must be called at the end: otherwise a failed write goes unnoticed.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::stdout)
    }
}

/// Prints a text, such as a report, on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    let written = streams::require_stdout().and_then(|()| out.write_all(text.as_bytes()));
    written.and_then(|()| out.flush()).map_err(Failure::stdout)
}

/// Prints the report of a verb that may have changed a file.
pub(crate) fn report_change(path: &Path, changed: bool, text: &str) -> Result<Outcome, Failure> {
    let state = if changed { "was changed" } else { "is unchanged" };
    print_after(&format!("{} {state}", path.display()), text)
}

/// Prints a report on finished work. If that fails, the error says what was done.
pub(crate) fn print_after(done: &str, text: &str) -> Result<Outcome, Failure> {
    print(text).map(|()| Outcome::Done).map_err(|failure| match failure {
        Failure::Write { error, .. } => Failure::Unreported { done: done.to_owned(), error },
        other => other,
    })
}

/// Says something about a file or a folder on standard error.
pub(crate) fn say_of(path: &Path, sentence: &str) -> Result<(), Failure> {
    let name = escape_controls(&path.display().to_string());
    print_to_stderr(&format!("koel: {name}: {sentence}\n"))
}

/// Prints a text on standard error, where it does not mix with the results.
pub(crate) fn print_to_stderr(text: &str) -> Result<(), Failure> {
    io::stderr()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::write(Path::new("standard error"), error))
}
