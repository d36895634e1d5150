//! Where a verb writes a filter: its arguments, and what it may not replace.
//!
//! Everything is checked before the filter is built, so that no work is lost:
//! - An existing file is replaced only if it is a Koel filter or empty, and writable. `--force`
//!   replaces any file.
//! - A block device, a socket or a folder is refused; a terminal too.
//! - The file is locked, so that an edit of it cannot put the old filter back.
//!
//! A filter with a secret is written for its owner only. If it replaces a filter that has a secret
//! too, it keeps the mode that the user has given to that one.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use koel::file::{Readers, folder_of};
use koel::{CuckooFilter, KeyHasher};

use crate::failure::{Failure, Outcome};
use crate::filter::file::{self, FilterFile};
use crate::identity;
use crate::output;

/// The first bytes of every filter.
const MAGIC: &[u8; 8] = b"koel\r\n\x1a\n";

/// The arguments of every verb that writes a filter to a new file.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutArgs {
    /// Where to write the filter; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,

    /// Replace OUT even if it is not a filter, or is read-only
    #[arg(long, display_order = 45)]
    force: bool,

    /// Print no report
    #[arg(long, display_order = 46, conflicts_with = "json")]
    quiet: bool,
}

/// A target that may be written.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    path: &'a Path,
    /// Whether it is a filter with a secret now.
    has_secret: bool,
    /// Whether the report is left out.
    is_quiet: bool,
    /// Locked until closed.
    _lock: Option<File>,
}

impl OutArgs {
    pub(crate) fn path(&self) -> &Path {
        &self.out
    }

    /// Checks the target and locks it.
    pub(crate) fn open(&self) -> Result<Target<'_>, Failure> {
        let path = &*self.out;
        let is_quiet = self.quiet;
        let new = Target { path, has_secret: false, is_quiet, _lock: None };
        if output::is_stdout(path) {
            return refuse_terminal(&io::stdout()).map(|()| new);
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && !identity::is_descriptor(path) => metadata,
            Ok(metadata) => return self.check_special(&metadata).map(|()| new),
            Err(_) => return self.check_folder().map(|()| new),
        };
        self.check_file(&metadata)?;
        output::before_replacing(path)?;
        let lock = file::lock_output(path);
        Ok(Target { path, has_secret: has_secret(path), is_quiet, _lock: lock })
    }

    /// Checks an existing file.
    fn check_file(&self, metadata: &Metadata) -> Result<(), Failure> {
        if self.force {
            return Ok(());
        }
        let remedy = "make it writable with `chmod u+w`, or use --force";
        file::refuse_read_only(&self.out, metadata, remedy)?;
        let advice = "a filter; choose another name, or replace it with --force";
        file::refuse_others(&self.out, MAGIC, advice)
    }

    /// Checks what is neither a regular file nor missing.
    fn check_special(&self, metadata: &Metadata) -> Result<(), Failure> {
        if metadata.is_dir() {
            return Err(Failure::write(&self.out, io::ErrorKind::IsADirectory.into()));
        }
        match identity::special_kind(metadata) {
            Some(kind @ ("a socket" | "a block device")) => Err(Failure::Usage(format!(
                "cannot write {}: it is {kind}; name a file or a pipe",
                self.out.display()
            ))),
            Some("a device") => match File::options().append(true).open(&self.out) {
                Ok(device) => refuse_terminal(&device),
                Err(error) => Err(Failure::write(&self.out, error)),
            },
            _ => Ok(()),
        }
    }

    /// Checks that the folder of a new file exists.
    fn check_folder(&self) -> Result<(), Failure> {
        let failure = |error| Failure::write(&self.out, error);
        let target = output::resolve_links(&self.out).map_err(failure)?;
        fs::metadata(folder_of(&target)).map_err(failure)?;
        output::before_replacing(&self.out)
    }
}

impl Target<'_> {
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// Writes the filter.
    pub(crate) fn write(&self, filter: &CuckooFilter) -> Result<(), Failure> {
        let readers = self.readers(filter.hasher());
        output::write_filter(self.path, readers, |sink| {
            filter.write_to(|bytes| sink.write_all(bytes))
        })
    }

    /// Copies the filter in a temporary file to the target.
    pub(crate) fn write_from(&self, filter: &mut File, hasher: KeyHasher) -> Result<(), Failure> {
        output::write_filter(self.path, self.readers(hasher), |sink| {
            filter.seek(SeekFrom::Start(0))?;
            io::copy(filter, sink).map(drop)
        })
    }

    /// Who may read the filter.
    fn readers(&self, hasher: KeyHasher) -> Readers {
        if is_keyed(hasher) && !self.has_secret { Readers::Owner } else { Readers::Usual }
    }

    /// Prints the report on the written filter, unless nothing is to be said.
    pub(crate) fn report(&self, text: &str) -> Result<Outcome, Failure> {
        if self.is_quiet { Ok(Outcome::Done) } else { output::report_on(self.path, text) }
    }
}

/// Whether the file is a filter with a secret.
fn has_secret(path: &Path) -> bool {
    FilterFile::open(path)
        .and_then(|file| Ok(is_keyed(file.view()?.hasher())))
        .is_ok_and(|is_keyed| is_keyed)
}

fn is_keyed(hasher: KeyHasher) -> bool {
    matches!(hasher, KeyHasher::Sip13 { .. })
}

/// Refuses to print a filter on a terminal.
fn refuse_terminal(out: &impl IsTerminal) -> Result<(), Failure> {
    if out.is_terminal() {
        return Err(Failure::Usage(
            "a filter is binary and the output is a terminal; name a file or redirect".to_owned(),
        ));
    }
    Ok(())
}
