//! Importing a folder of the disk with all that is in it.
//!
//! A file whose size, times and inode are those of the last version is not read again, if its
//! chunks are still there (`skip.rs`). One that cannot be read, or that is neither file, folder nor
//! link, is reported, and the rest goes on.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, CWD, Dir, FileType, Mode, OFlags};

use super::Problem;
use super::place::{self, Status};
use crate::Durability;
use crate::content::chunks::Chunking;
use crate::content::entry::{Content, Entry, Kind, Stamp, StoredFile, Time};
use crate::content::error::ArchiveError;
use crate::content::import::{Writer, check};
use crate::content::read::{Listing, MAX_DEPTH};
use crate::content::skip::Skipping;
use crate::content::{Archive, names};
use crate::kernel::descriptors::with_room;

/// How a tree is imported.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    pub(super) chunking: Chunking,
    durability: Durability,
    pub(super) read_all: bool,
    skipped: Option<PathBuf>,
    excluded: Option<Excluded>,
}

/// Says of a name whether it is left out.
type IsExcluded = dyn Fn(&[u8]) -> bool + Send + Sync;

#[derive(Clone)]
struct Excluded(Arc<IsExcluded>);

impl fmt::Debug for Excluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Excluded")
    }
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            chunking: Chunking::default(),
            durability: Durability::Synced,
            read_all: false,
            skipped: None,
            excluded: None,
        }
    }
}

impl TreeOptions {
    /// Sets how files are cut.
    #[must_use]
    pub fn chunking(mut self, chunking: Chunking) -> Self {
        self.chunking = chunking;
        self
    }

    /// Sets whether the import survives a crash when it returns. With [`Durability::None`], several
    /// imports can share one [`LogStore::sync`](crate::LogStore::sync).
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether files are read whose size, times and inode did not change. Then every chunk of
    /// the new version is checked, and stored again if it is damaged. Otherwise chunks of such
    /// files are checked if they are in the first 64 MiB that are skipped or in a sample of the
    /// rest, one in 128. If one of those is damaged, all are checked.
    #[must_use]
    pub fn read_all(mut self, read_all: bool) -> Self {
        self.read_all = read_all;
        self
    }

    /// Leaves out this folder. For the folder of the store, which grows during the import.
    #[must_use]
    pub fn skip(mut self, folder: impl Into<PathBuf>) -> Self {
        self.skipped = Some(folder.into());
        self
    }

    /// Leaves out files, folders and links for whose name, from the name of the version on, this
    /// returns `true`.
    #[must_use]
    pub fn exclude(mut self, is_excluded: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.excluded = Some(Excluded(Arc::new(is_excluded)));
        self
    }
}

/// What the import of a tree did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeReport {
    /// The number of the new version.
    pub version: u64,
    /// Files of the version.
    pub files: u64,
    /// Folders of the version.
    pub folders: u64,
    /// Symbolic links of the version.
    pub links: u64,
    /// Bytes of its files.
    pub length: u64,
    /// Files that were not read, because they did not change since the last version.
    pub unchanged: u64,
    /// Chunks of the files that were read.
    pub chunks: u64,
    /// Those that the store did not have, or had damaged.
    pub new_chunks: u64,
    /// Bytes of those.
    pub new_bytes: u64,
    /// The number of chunks that the store had damaged, and that were stored again. Chunks of lists
    /// and of folders count too.
    pub repaired: u64,
    /// Files, folders and links that were excluded; what is in such a folder is not counted.
    pub excluded: u64,
    /// The names of sockets. They hold nothing and are not stored; programs make them anew.
    pub sockets: Vec<Vec<u8>>,
    /// What is not in the version, or not as it is on disk.
    pub problems: Vec<Problem>,
}

/// An import in progress.
pub(super) struct Import<'a> {
    archive: &'a Archive,
    pub(super) writer: Writer<'a>,
    pub(super) options: &'a TreeOptions,
    /// The device and the inode of the folder to leave out.
    skipped: Option<(u64, u64)>,
    /// Files that have several names, by device and inode, with the stamp that they had.
    pub(super) linked: HashMap<(u64, u64), (Stamp, StoredFile, bool)>,
    skipping: Skipping<'a>,
    pub(super) report: TreeReport,
    pub(super) progress: &'a mut dyn FnMut(u64),
}

impl Archive {
    /// Stores the file or the folder at `path`, with all that is in it, as a new version of `name`.
    /// Calls `progress` with the bytes of files as they are read.
    ///
    /// Keeps files, folders, symbolic links, hard links, holes, modes, owners and times. Everything
    /// else, and what cannot be read, is left out and reported. A file that changes while it is
    /// read is read again, and marked if it changes again. A symbolic link at `path` itself is
    /// followed, unless it leads to nothing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let tree = folder.path().join("tree");
    /// # std::fs::create_dir(&tree)?;
    /// # std::fs::write(tree.join("file"), "text")?;
    /// use koel_store::LogStore;
    /// use koel_store::content::{Archive, RestoreOptions, Selection, Target, TreeOptions};
    ///
    /// let archive = Archive::new(LogStore::open(folder.path().join("store"))?);
    /// let report = archive.import_tree("tree", &tree, &TreeOptions::default(), &mut |_| ())?;
    /// assert_eq!((report.files, report.folders, report.problems.len()), (1, 1, 0));
    ///
    /// let (_, entry) = archive.find("tree")?;
    /// let copy = folder.path().join("copy");
    /// let (target, options) = (Target::Path(&copy), RestoreOptions::default());
    /// let all = &mut |_: &[u8], _: &_| Selection::Take;
    /// archive.restore("tree", &entry, target, &options, all, &mut |_| ())?;
    /// assert_eq!(std::fs::read(copy.join("file"))?, b"text");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArchiveError::BadName`], [`ArchiveError::Overlap`], [`ArchiveError::BadChunking`],
    /// [`ArchiveError::Read`] if `path` itself cannot be read, and those of the store. There is no
    /// new version then, but perhaps after [`Error::InDoubt`](crate::Error::InDoubt).
    pub fn import_tree(
        &self,
        name: impl AsRef<[u8]>,
        path: &Path,
        options: &TreeOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<TreeReport, ArchiveError> {
        let (name, time) = (name.as_ref(), Time::now());
        check(name, options.chunking)?;
        let _no_collection = self.chunks_in_use.read();
        let skipped = options.skipped.as_ref().and_then(|path| Some(fs::stat(path).ok()?.into()));
        let mut import = Import {
            archive: self,
            writer: Writer::new(self),
            options,
            skipped: skipped.map(|status: Status| status.identity),
            linked: HashMap::new(),
            skipping: Skipping::new(self, time),
            report: TreeReport::default(),
            progress,
        };
        let mut entry = import.root(name, path)?;
        if import.skipping.starts_over() {
            (import.report, import.linked) = Default::default();
            import.writer.chunks = 0;
            entry = import.root(name, path)?;
        }
        let Import { writer, mut report, .. } = import;
        let source = std::fs::canonicalize(path).ok();
        report.chunks = writer.chunks;
        report.new_chunks = writer.new_chunks;
        report.new_bytes = writer.new_bytes;
        report.repaired = writer.repaired;
        let version = (name, time, &entry);
        report.version =
            self.commit(version, source.as_deref(), writer.parts, options.durability)?;
        Ok(report)
    }
}

impl Import<'_> {
    fn root(&mut self, name: &[u8], path: &Path) -> Result<Entry, ArchiveError> {
        let read = |error| ArchiveError::Read(error);
        let status = match fs::stat(path).map(Status::from) {
            Err(error) => {
                let link = dangling(path).ok_or_else(|| read(error.into()))?;
                self.report.links += 1;
                return Ok(link);
            }
            Ok(status) => status,
        };
        // A damaged version has nothing to compare with.
        let before = self.archive.version_above(name).ok().flatten();
        let before = before.filter(|version| version.name == name).map(|version| version.entry);
        if !matches!(status.kind, FileType::RegularFile | FileType::Directory) {
            return Err(read(io::Error::other("it is neither a file nor a folder")));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if let Some(file) = self.known(name, &status, before.as_ref())? {
            return Ok(file);
        }
        let open = || Ok(fs::open(path, flags, Mode::empty())?);
        let file = with_room(open).map_err(read)?;
        let entry = match status.kind {
            FileType::Directory => self.folder(name, &status, file, before.as_ref(), 0)?,
            _ => self.file(name, file)?,
        };
        Ok(entry)
    }

    /// Returns the entry of a name in a folder, or `None` if it is left out.
    fn entry(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &[u8],
        before: Option<&Entry>,
        depth: usize,
    ) -> Result<Option<Entry>, ArchiveError> {
        if self.options.excluded.as_ref().is_some_and(|excluded| (excluded.0)(path)) {
            self.report.excluded += 1;
            return Ok(None);
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let status = match Status::at(folder, name) {
            Ok(status) => status,
            Err(error) => return Ok(self.leave_out(path, unreadable(&error))),
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = |flags| with_room(|| Ok(fs::openat(folder, name, flags, Mode::empty())?));
        let made = match status.kind {
            FileType::RegularFile => match self.known(path, &status, before)? {
                Some(file) => Ok(file),
                None => match open(flags | OFlags::NOCTTY) {
                    Ok(file) => self.file(path, file),
                    Err(error) => Err(ArchiveError::Read(error)),
                },
            },
            FileType::Directory if Some(status.identity) == self.skipped => return Ok(None),
            FileType::Directory => match open(flags | OFlags::DIRECTORY) {
                Ok(opened) => self.folder(path, &status, opened, before, depth),
                Err(error) => self.closed_folder(path, &status, unreadable(&error)),
            },
            FileType::Symlink => match fs::readlinkat(folder, name, Vec::new()) {
                Ok(target) => {
                    self.report.links += 1;
                    Ok(new_entry(&status, Kind::Link(target.into_bytes())))
                }
                Err(error) => Err(ArchiveError::Read(error.into())),
            },
            FileType::Socket => {
                self.report.sockets.push(path.to_owned());
                return Ok(None);
            }
            other => {
                let what = format!("{} is not kept", describe(other));
                return Ok(self.leave_out(path, what));
            }
        };
        match made {
            Ok(mut entry) => {
                entry.name = name.to_owned();
                Ok(Some(entry))
            }
            Err(ArchiveError::Read(error)) => Ok(self.leave_out(path, unreadable(&error))),
            Err(error) => Err(error),
        }
    }

    /// Stores the entries of an open folder, and all below it.
    fn folder(
        &mut self,
        path: &[u8],
        status: &Status,
        folder: OwnedFd,
        before: Option<&Entry>,
        depth: usize,
    ) -> Result<Entry, ArchiveError> {
        if depth == MAX_DEPTH {
            let what = format!("it is below more than {MAX_DEPTH} folders");
            return self.closed_folder(path, status, what);
        }
        let (names, error) = names_in(folder.as_fd());
        if let Some(error) = error {
            self.report_problem(path, unreadable(&error));
        }
        let mut before = Before::new(self.archive, path, before);
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let (path, before) = (names::join(path, &name), before.take(&name));
            entries.extend(self.entry(folder.as_fd(), &path, before.as_ref(), depth + 1)?);
        }
        if before.is_damaged {
            self.skipping.note_damage();
        }
        let had_extended = place::has_extended(folder.as_fd());
        self.report_extended(path, had_extended);
        self.report.folders += 1;
        let stored = self.writer.store_listing(&entries)?;
        Ok(Entry { had_extended, ..new_entry(status, Kind::Folder(stored)) })
    }

    /// Returns the entry of a folder whose entries cannot be read.
    fn closed_folder(
        &mut self,
        path: &[u8],
        status: &Status,
        what: String,
    ) -> Result<Entry, ArchiveError> {
        self.report_problem(path, what);
        self.report.folders += 1;
        Ok(new_entry(status, Kind::Folder(self.writer.store_listing(&[])?)))
    }

    pub(super) fn report_extended(&mut self, path: &[u8], had_extended: bool) {
        if had_extended {
            let what = "its extended attributes or access control list are not kept";
            self.report_problem(path, what.to_owned());
        }
    }

    pub(super) fn report_problem(&mut self, path: &[u8], what: String) {
        self.report.problems.push(Problem { name: path.to_owned(), what });
    }

    fn leave_out(&mut self, path: &[u8], what: String) -> Option<Entry> {
        self.report_problem(path, what);
        None
    }
}

pub(super) fn new_entry(status: &Status, kind: Kind) -> Entry {
    let attributes = Some(status.attributes);
    Entry { name: Vec::new(), kind, attributes, had_extended: false }
}

/// Returns the entry of a symbolic link that leads to nothing.
fn dangling(path: &Path) -> Option<Entry> {
    let status = fs::lstat(path).map(Status::from).ok()?;
    let target = fs::readlinkat(CWD, path, Vec::new()).ok()?;
    Some(new_entry(&status, Kind::Link(target.into_bytes())))
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a FIFO",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a special file",
    }
}

/// How often a file is read that changes meanwhile.
const READS: usize = 2;

impl Import<'_> {
    /// Returns the entry of a file that is known not to have changed, or that has another name in
    /// this version.
    pub(super) fn known(
        &mut self,
        path: &[u8],
        status: &Status,
        before: Option<&Entry>,
    ) -> Result<Option<Entry>, ArchiveError> {
        if let Some((stamp, file, had_extended)) = self.linked.get(&status.identity)
            && *stamp == status.stamp
        {
            let (file, had_extended) = (*file, *had_extended);
            self.count_file(path, file.content, had_extended);
            return Ok(Some(Entry { had_extended, ..new_entry(status, Kind::File(file)) }));
        }
        let Some(before) = before.filter(|_| !self.options.read_all) else { return Ok(None) };
        let Kind::File(mut file) = before.kind else { return Ok(None) };
        let is_same = file.stamp == status.stamp
            && file.content.length == status.length
            && before.attributes == Some(status.attributes);
        if !is_same || !self.skipping.may_skip(path, file.content)? {
            return Ok(None);
        }
        self.report.unchanged += 1;
        self.link(status, &mut file, before.had_extended);
        self.count_file(path, file.content, before.had_extended);
        Ok(Some(Entry { name: Vec::new(), kind: Kind::File(file), ..before.clone() }))
    }

    /// Stores the bytes of an open file. One that changes meanwhile is read again; if it changes
    /// again, it is marked.
    pub(super) fn file(&mut self, path: &[u8], file: OwnedFd) -> Result<Entry, ArchiveError> {
        let had_extended = place::has_extended(file.as_fd());
        let mut source = File::from(file);
        let (mut status, mut file) = self.read(&source)?;
        for _ in 1..READS {
            if file.changed_while_read {
                source.rewind().map_err(ArchiveError::Read)?;
                (status, file) = self.read(&source)?;
            }
        }
        if file.changed_while_read {
            let what = "it changed while it was read, twice; its bytes may be of several moments";
            self.report_problem(path, what.to_owned());
        }
        self.link(&status, &mut file, had_extended);
        self.count_file(path, file.content, had_extended);
        Ok(Entry { had_extended, ..new_entry(&status, Kind::File(file)) })
    }

    /// Stores the bytes of an open file, which is at its start.
    fn read(&mut self, source: &File) -> Result<(Status, StoredFile), ArchiveError> {
        let status = Status::of(source.as_fd()).map_err(ArchiveError::Read)?;
        if status.kind != FileType::RegularFile {
            return Err(ArchiveError::Read(io::Error::other("it is no longer a file")));
        }
        let stamp = status.lasting_stamp();
        let metered = Metered { file: source, progress: &mut *self.progress };
        let content = self.writer.store(metered, self.options.chunking)?;
        let after = Status::of(source.as_fd()).map_err(ArchiveError::Read)?;
        let changed = after.stamp != status.stamp || after.length != content.length;
        let file = StoredFile {
            has_holes: status.has_holes,
            changed_while_read: changed,
            ..StoredFile::new(content, if changed { Stamp::default() } else { stamp })
        };
        Ok((status, file))
    }

    /// Gives a file with several names the number that these share in the version.
    fn link(&mut self, status: &Status, file: &mut StoredFile, had_extended: bool) {
        file.link_number = 0;
        if status.has_other_names {
            file.link_number = self.linked.len() as u64 + 1;
            self.linked.insert(status.identity, (status.stamp, *file, had_extended));
        }
    }

    fn count_file(&mut self, path: &[u8], content: Content, had_extended: bool) {
        self.report.files += 1;
        self.report.length += content.length;
        self.report_extended(path, had_extended);
    }
}

/// A file that reports how much of it was read.
struct Metered<'a> {
    file: &'a File,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        (self.progress)(count as u64);
        Ok(count)
    }
}

/// The entries that a folder had in the last version, read in step with those on disk.
pub(super) struct Before<'a> {
    listing: Option<Listing<'a>>,
    next: Option<Entry>,
    /// Whether some of them cannot be read.
    is_damaged: bool,
}

impl<'a> Before<'a> {
    pub(super) fn new(archive: &'a Archive, path: &'a [u8], before: Option<&Entry>) -> Self {
        let content = before.filter(|entry| matches!(entry.kind, Kind::Folder(_)));
        let content = content.and_then(Entry::content);
        let listing = content.map(|content| Listing::new(archive, path, content));
        Self { listing, next: None, is_damaged: false }
    }

    /// Returns the entry with this name. To be called with ascending names.
    pub(super) fn take(&mut self, name: &[u8]) -> Option<Entry> {
        while self.next.as_ref().is_none_or(|entry| &entry.name[..] < name) {
            // What is damaged is read from disk again.
            let next = self.listing.as_mut()?.next();
            self.is_damaged |= next.is_err();
            self.next = Some(next.ok().flatten()?);
        }
        self.next.take_if(|entry| entry.name == name)
    }
}

/// Returns the names in a folder, ascending, and the error that kept further ones from being read.
pub(super) fn names_in(folder: BorrowedFd<'_>) -> (Vec<Vec<u8>>, Option<io::Error>) {
    let mut names = Vec::new();
    let mut error = None;
    match with_room(|| Ok(Dir::read_from(folder)?)) {
        Err(refused) => error = Some(refused),
        Ok(entries) => {
            for entry in entries {
                match entry {
                    Ok(entry) => names.push(entry.file_name().to_bytes().to_owned()),
                    Err(broken) => error = Some(broken.into()),
                }
            }
        }
    }
    names.retain(|name| names::is_component(name));
    names.sort_unstable();
    (names, error)
}
