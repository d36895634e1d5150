//! Opens filter files: mapped into memory for reading, or locked and loaded for editing.
//!
//! Reading ([`FilterFile`]): the file is mapped and its header checked. A lookup reads two buckets,
//! so a filter of any size opens at once and uses only the pages that it touches. The checksum of a
//! large one is checked before the first key is reported absent ([`Checked`]): a found key needs no
//! proof, but damage can hide keys.
//!
//! Editing ([`Editing`]): the file is locked against other edits and against being replaced
//! ([`lock_output`]), then loaded and checked completely. The changed filter is written to a
//! temporary file and renamed over the old one. Readers never wait and never see a partial file.
//!
//! A pipe, a device, a socket or a folder is refused without opening it. A stream that the user
//! names as such, `-` or the `<(..)` of a shell, is read only as far as its header says.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use koel::{CuckooFilter, FilterView, ImageError};
use memmap2::Mmap;

use crate::failure::Failure;
use crate::identity::{self, Identity};
use crate::output;
use crate::streams;
use crate::web;

/// Bytes of the header of a filter.
const HEADER_BYTES: u64 = 192;
/// The checksum of filters of at most so many bytes is checked at once, unless nothing is to be
/// checked. That takes about 3 ms.
const CHECKED_AT_ONCE: usize = 16 << 20;

/// The bytes of a filter, with the path for messages.
#[derive(Debug)]
pub(crate) struct FilterFile {
    path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    /// From a pipe, which cannot be mapped, or an empty file.
    Read(Vec<u8>),
}

impl FilterFile {
    /// Maps a file, or reads an open descriptor that is a stream.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let metadata = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if web::is_url(path) => {
                let verbs = "only `koel check` and `koel info` ask; fetch it and name the file";
                Failure::about(path, format_args!("is an address, which {verbs}"))
            }
            _ => Failure::read(path, error),
        })?;
        if identity::is_descriptor(path) && !metadata.is_file() {
            let bytes = File::open(path).and_then(read_stream);
            return Self::from_bytes(path, bytes);
        }
        refuse_irregular(path, &metadata)?;
        Self::from_bytes(path, File::open(path).and_then(|file| map(&file)))
    }

    /// Maps a file, or reads standard input for `-`; for verbs that read no keys from there.
    pub(crate) fn open_or_stdin(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            Self::from_bytes(Path::new("standard input"), read_stream(streams::stdin()?.lock()))
        } else {
            Self::open(path)
        }
    }

    /// Maps an open file; messages call it `path`.
    pub(crate) fn of(path: &Path, file: &File) -> Result<Self, Failure> {
        Self::from_bytes(path, map(file))
    }

    fn from_bytes(path: &Path, bytes: io::Result<Bytes>) -> Result<Self, Failure> {
        let bytes = bytes.map_err(|error| Failure::read(path, error))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// The filter in these bytes. Only the header is checked.
    pub(crate) fn view(&self) -> Result<FilterView<'_>, Failure> {
        FilterView::open(self.bytes()).map_err(|error| self.failure(error))
    }

    /// The filter in these bytes, with everything checked.
    pub(crate) fn verified_view(&self) -> Result<FilterView<'_>, Failure> {
        let view = self.view()?;
        view.verify().map(|()| view).map_err(|error| self.failure(error))
    }

    /// The filter in these bytes, checked for damage as far as `args` ask for it.
    pub(crate) fn checked(&self, args: VerifyArgs) -> Result<Checked<'_>, Failure> {
        let view = if args.verify { self.verified_view()? } else { self.view()? };
        let mut checked = Checked { file: self, view, is_done: args.verify || args.no_verify };
        if self.bytes().len() <= CHECKED_AT_ONCE {
            checked.before_absent()?;
        }
        Ok(checked)
    }

    /// A copy to edit. Everything is checked.
    pub(crate) fn load(&self) -> Result<CuckooFilter, Failure> {
        CuckooFilter::from_bytes(self.bytes()).map_err(|error| self.failure(error))
    }

    pub(crate) fn failure(&self, error: ImageError) -> Failure {
        Failure::Image { path: self.path.clone(), error }
    }

    /// All bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// When a filter is checked for damage.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Check the whole filter for damage first
    #[arg(long)]
    verify: bool,

    /// Report keys absent although the filter may be damaged
    #[arg(long, conflicts_with = "verify")]
    no_verify: bool,
}

impl VerifyArgs {
    /// Whether the whole filter is to be checked first.
    pub(crate) fn checks_all(self) -> bool {
        self.verify
    }
}

/// A filter that is asked for keys.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    file: &'a FilterFile,
    pub(crate) view: FilterView<'a>,
    is_done: bool,
}

impl Checked<'_> {
    /// Must be called before a key is reported absent. The first call reads all bytes of the file.
    pub(crate) fn before_absent(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_done, true) {
            self.view.verify_checksum().map_err(|error| self.file.failure(error))?;
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "a memory map")]
fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        // An empty file cannot be mapped.
        return Ok(Bytes::Read(Vec::new()));
    }
    // SAFETY: the mapped bytes must not change while they are borrowed. koel never writes into an
    // existing filter: it renames a new file over it (`Replacement`), and the map keeps the old
    // one. Another program that writes into or truncates the file can make answers wrong or end
    // this process with SIGBUS. Nothing worse follows, because every access to the bytes of a
    // filter is bounds-checked, whatever they hold.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Bytes::Mapped(map))
}

/// Reads a header, and then as many bytes as it says. Stops after a header that is not sound.
fn read_stream(mut reader: impl Read) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    reader.by_ref().take(HEADER_BYTES).read_to_end(&mut bytes)?;
    if let Err(ImageError::Length { expected, got }) = FilterView::open(&bytes)
        && got == HEADER_BYTES
    {
        // One more, so that a stream that is too long is noticed.
        let rest = expected.saturating_sub(got).saturating_add(1);
        reader.take(rest).read_to_end(&mut bytes)?;
    }
    Ok(Bytes::Read(bytes))
}

/// Refuses to open what could block or never end. Nothing is opened to find out.
fn refuse_irregular(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    if metadata.is_dir() {
        return Err(Failure::read(path, io::ErrorKind::IsADirectory.into()));
    }
    identity::special_kind(metadata).map_or(Ok(()), |kind| {
        Err(Failure::Usage(format!(
            "cannot read {}: it is {kind}, not a regular file; copy the filter to a file",
            path.display()
        )))
    })
}

/// A filter loaded for editing. No other koel process can edit the file until this is dropped.
#[derive(Debug)]
pub(crate) struct Editing {
    path: PathBuf,
    pub(crate) filter: CuckooFilter,
    /// Locked until closed.
    _lock: File,
}

impl Editing {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let metadata = fs::metadata(path).map_err(|error| Failure::read(path, error))?;
        refuse_irregular(path, &metadata)?;
        refuse_read_only(path, &metadata, "make it writable with `chmod u+w`")?;
        let lock = lock(path).map_err(|error| Failure::read(path, error))?;
        let filter = FilterFile::open(path)?.load()?;
        Ok(Self { path: path.to_owned(), filter, _lock: lock })
    }

    /// Replaces the file with the changed filter, even if it is also standard output.
    pub(crate) fn save(self) -> Result<(), Failure> {
        output::before_replacing(&self.path)?;
        output::write_file(&self.path, |sink| self.filter.write_to(|bytes| sink.write_all(bytes)))
            .map_err(|error| Failure::write(&self.path, error))
    }
}

/// Refuses to replace a file that is neither empty nor begins with `magic`.
pub(crate) fn refuse_others(path: &Path, magic: &[u8; 8], advice: &str) -> Result<(), Failure> {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut first));
    read.map_err(|error| Failure::read(path, error))?;
    if first.is_empty() || first == magic {
        return Ok(());
    }
    Err(Failure::about(path, format!("exists and is not {advice}")))
}

/// Refuses a file that this process may not write. The folder alone decides whether a file can be
/// replaced, but its user has marked this file as one to keep.
pub(crate) fn refuse_read_only(
    path: &Path,
    metadata: &Metadata,
    remedy: &str,
) -> Result<(), Failure> {
    let opened = File::options().write(true).open(path);
    if metadata.permissions().readonly() || opened.is_err() {
        let name = path.display();
        return Err(Failure::Usage(format!("cannot replace {name}: it is read-only; {remedy}")));
    }
    Ok(())
}

/// Locks a file that is about to be replaced, after edits in progress have ended.
///
/// An edit that ended after the replacement would put the old filter back. Returns `None` if there
/// is no such file or it cannot be locked.
pub(crate) fn lock_output(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    lock(path).ok()
}

/// Waits for other edits of the file. Each edit renames a new file to this path, so after the wait
/// the path is checked, and the new file locked instead.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        if let Some(file) = locked(path, file, |file| file.lock())? {
            return Ok(file);
        }
    }
}

/// Locks a file, which is made if there is none. `None` if another process has locked it.
pub(crate) fn lock_if_free(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        match locked(path, file, |file| Ok(file.try_lock()?)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Ok(None) => {}
            locked => return locked,
        }
    }
}

/// Locks an open file; `None` if the path names another one since.
fn locked(
    path: &Path,
    file: File,
    lock: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<Option<File>> {
    match lock(&file) {
        // The file system has no locks: go on without one.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(Some(file)),
        other => other?,
    }
    Ok(is_still(path, &file)?.then_some(file))
}

/// Whether the path still names the open file. On systems without file identities, whether the
/// path exists.
fn is_still(path: &Path, file: &File) -> io::Result<bool> {
    let [named, held] =
        [fs::metadata(path)?, file.metadata()?].map(|metadata| Identity::from_metadata(&metadata));
    Ok(named == held)
}
