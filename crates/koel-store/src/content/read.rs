//! Reading what is stored: the chunks of a content, the entries of a folder, an entry by its name
//! and all below it, and a file as a whole.
//!
//! Every list and chunk is compared with its hash, and the whole with the hash in its entry. A
//! reader holds one chunk, and one list for each height. No length in a record decides how much
//! memory is taken.

use std::io::Write;
use std::path::Path;

use koel::file::{Readers, Replacement, folder_of};

use super::entry::{Content, DecodeError, Entry, Fields, Kind};
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::versions::Version;
use super::{Archive, chunks, names, temporary};
use crate::Error;

/// The chunks of a content, in order.
#[derive(Debug)]
pub(super) struct Chunks<'a> {
    archive: &'a Archive,
    /// Names the file in errors.
    path: &'a [u8],
    content: Content,
    /// The rest of a list for each height that was entered, last hash first.
    lists: Vec<Vec<Hash>>,
    /// The hash of a content with lists. That of a single chunk is compared anyway.
    whole: Option<Box<blake3::Hasher>>,
    /// Bytes and chunks that were read.
    length: u64,
    chunks: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(archive: &'a Archive, path: &'a [u8], content: Content) -> Self {
        let lists = if content.length == 0 { Vec::new() } else { vec![vec![content.root]] };
        let whole = (content.height > 0 || content.length == 0).then(Box::default);
        Self { archive, path, content, lists, whole, length: 0, chunks: 0 }
    }

    /// Returns the next chunk. At the end, fails if the whole is not what was imported.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(hash) = self.next_hash(&mut |_| ())? else { return self.check_whole() };
        let chunk = self.read(&hash)?;
        self.chunks += 1;
        self.length = self.length.saturating_add(chunk.len() as u64);
        if let Some(whole) = &mut self.whole {
            whole.update(&chunk);
        }
        Ok(Some(chunk))
    }

    /// Reads the chunk with the hash that came last, and checks it.
    pub(super) fn read(&self, hash: &Hash) -> Result<Vec<u8>, ArchiveError> {
        self.part(b"czCZ", hash, &format!("chunk {}", self.chunks))
    }

    /// The error if there is no chunk with the hash that came last.
    #[cfg(unix)]
    pub(super) fn missing(&self) -> ArchiveError {
        self.broken(format!("chunk {} is missing", self.chunks))
    }

    /// Calls `visit` with the hash of each chunk, until it fails. Reads the lists, not the chunks.
    #[cfg(unix)]
    pub(super) fn try_each(
        mut self,
        mut visit: impl FnMut(&Self, &Hash) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        while let Some(hash) = self.next_hash(&mut |_| ())? {
            visit(&self, &hash)?;
            self.chunks += 1;
        }
        Ok(())
    }

    /// Calls `visit` with the hash of each list and chunk, without reading the chunks.
    pub(super) fn each_hash(
        mut self,
        mut visit: impl FnMut(&Hash) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut lists = Vec::new();
        while let Some(hash) = self.next_hash(&mut |list| lists.push(*list))? {
            lists.drain(..).try_for_each(|list| visit(&list))?;
            visit(&hash)?;
        }
        Ok(())
    }

    /// Returns the hash of the next chunk. Calls `list` with the hash of each list on the way.
    fn next_hash(&mut self, list: &mut dyn FnMut(&Hash)) -> Result<Option<Hash>, ArchiveError> {
        loop {
            let Some(last) = self.lists.last_mut() else { return Ok(None) };
            let Some(hash) = last.pop() else {
                self.lists.pop();
                continue;
            };
            if self.lists.len() > usize::from(self.content.height) {
                return Ok(Some(hash));
            }
            list(&hash);
            let what = format!("the list before chunk {}", self.chunks);
            let bytes = self.part(b"lL", &hash, &what)?;
            let (hashes, rest) = bytes.as_chunks::<32>();
            if !rest.is_empty() || hashes.is_empty() || hashes.len() > keys::LIST {
                return Err(self.broken(format!("{what} has the wrong length")));
            }
            self.lists.push(hashes.iter().rev().copied().collect());
        }
    }

    /// Returns a chunk or a list from the first of these kinds of records that has it. All are
    /// tried before damage is an error.
    fn part(&self, kinds: &[u8], hash: &Hash, what: &str) -> Result<Vec<u8>, ArchiveError> {
        let mut failure = None;
        for &kind in kinds {
            let bytes = match self.archive.store.get(&keys::key(kind, hash)) {
                Ok(None) => continue,
                // What cannot be decompressed has no hash: it is reported as another chunk.
                Ok(Some(value)) if matches!(kind, b'z' | b'Z') => {
                    chunks::unpack(&value).unwrap_or(value)
                }
                Ok(Some(value)) => value,
                Err(error @ Error::Damaged { .. }) => {
                    failure.get_or_insert(error.into());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if blake3::hash(&bytes) == *hash {
                return Ok(bytes);
            }
            let other = || self.broken(format!("{what} does not match its hash"));
            failure.get_or_insert_with(other);
        }
        Err(failure.unwrap_or_else(|| self.broken(format!("{what} is missing"))))
    }

    fn check_whole(&mut self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Content { length, hash, .. } = self.content;
        let is_whole = self.whole.as_ref().is_none_or(|whole| whole.finalize() == hash);
        if self.length != length || !is_whole {
            let what = format!("its {} bytes are not the {length} imported ones", self.length);
            return Err(self.broken(what));
        }
        Ok(None)
    }

    fn broken(&self, what: String) -> ArchiveError {
        ArchiveError::Broken { name: self.path.to_owned(), what }
    }
}

/// The entries of a folder, by ascending name.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    chunks: Chunks<'a>,
    bytes: Vec<u8>,
    /// Where the next entry starts in `bytes`.
    start: usize,
    /// The name of the last entry.
    last: Vec<u8>,
}

impl<'a> Listing<'a> {
    pub(super) fn new(archive: &'a Archive, path: &'a [u8], content: Content) -> Self {
        let chunks = Chunks::new(archive, path, content);
        Self { chunks, bytes: Vec::new(), start: 0, last: Vec::new() }
    }

    /// Returns the next entry. Its name is that of a file in the folder, and comes once.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, ArchiveError> {
        loop {
            let mut fields = Fields(&self.bytes[self.start..]);
            match Entry::decode(&mut fields) {
                Ok(entry) if names::is_component(&entry.name) && entry.name > self.last => {
                    self.start = self.bytes.len() - fields.0.len();
                    self.last.clone_from(&entry.name);
                    return Ok(Some(entry));
                }
                Ok(entry) => {
                    let name = names::escape(&entry.name);
                    return Err(self.chunks.broken(format!("it cannot contain `{name}`")));
                }
                Err(DecodeError::Invalid) => {
                    return Err(self.chunks.broken("its list of files is invalid".to_owned()));
                }
                Err(DecodeError::Short) => {}
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            match self.chunks.next()? {
                Some(chunk) => self.bytes.extend(chunk),
                None if self.bytes.is_empty() => return Ok(None),
                None => {
                    return Err(self.chunks.broken("its list of files is cut short".to_owned()));
                }
            }
        }
    }
}

/// Maximum number of folders above a file, below the imported folder.
pub(super) const MAX_DEPTH: usize = 256;

impl Archive {
    /// Returns the newest version of what has this name, or of the folder that it is in, and its
    /// entry.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::LogStore;
    /// use koel_store::content::{Archive, Chunking};
    ///
    /// let archive = Archive::new(LogStore::open(folder.path())?);
    /// archive.import("notes", &b"text"[..], Chunking::default())?;
    /// let (version, entry) = archive.find("notes")?;
    /// assert_eq!((version.number, entry.content().unwrap().length), (1, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], [`ArchiveError::Broken`], and those of the store.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<(Version, Entry), ArchiveError> {
        let name = name.as_ref();
        let version = self.version_above(name)?.ok_or_else(|| no_such_name(name))?;
        let entry = self.find_in(&version, name)?;
        Ok((version, entry))
    }

    /// Returns the entry with this name in a version.
    ///
    /// # Errors
    /// [`ArchiveError::NoSuchName`], [`ArchiveError::Broken`], and those of the store.
    pub fn find_in(
        &self,
        version: &Version,
        name: impl AsRef<[u8]>,
    ) -> Result<Entry, ArchiveError> {
        let name = name.as_ref();
        let missing = || no_such_name(name);
        let rest = match name.strip_prefix(&version.name[..]).ok_or_else(missing)? {
            b"" => return Ok(version.entry.clone()),
            rest => rest.strip_prefix(b"/").ok_or_else(missing)?,
        };
        let mut entry = version.entry.clone();
        let mut path = version.name.clone();
        for component in rest.split(|byte| *byte == b'/') {
            let Kind::Folder(folder) = entry.kind else { return Err(missing()) };
            let mut listing = Listing::new(self, &path, folder.content);
            entry = loop {
                let next = listing.next()?.ok_or_else(missing)?;
                if next.name == component {
                    break next;
                }
            };
            path = names::join(&path, component);
        }
        Ok(entry)
    }

    /// Calls `visit` with an entry, which has this path, and with all entries below it, each with
    /// its path. Returns early from a folder if `visit` returns `false` for it.
    ///
    /// # Errors
    /// Those of `visit`, [`ArchiveError::Broken`] if a list of files is damaged, and those of the
    /// store.
    pub fn walk(
        &self,
        path: impl AsRef<[u8]>,
        entry: &Entry,
        visit: &mut impl FnMut(&[u8], &Entry) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        self.walk_below(path.as_ref(), entry, 0, visit)
    }

    fn walk_below(
        &self,
        path: &[u8],
        entry: &Entry,
        depth: usize,
        visit: &mut impl FnMut(&[u8], &Entry) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        if !visit(path, entry)? {
            return Ok(());
        }
        let Kind::Folder(folder) = entry.kind else { return Ok(()) };
        check_depth(path, depth)?;
        let mut listing = Listing::new(self, path, folder.content);
        while let Some(next) = listing.next()? {
            self.walk_below(&names::join(path, &next.name), &next, depth + 1, visit)?;
        }
        Ok(())
    }
}

/// Fails at a folder that is too deep: an archive may be made to exhaust the stack.
pub(super) fn check_depth(path: &[u8], depth: usize) -> Result<(), ArchiveError> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    let what = format!("it is below more than {MAX_DEPTH} folders");
    Err(ArchiveError::Broken { name: path.to_owned(), what })
}

pub(super) fn no_such_name(name: &[u8]) -> ArchiveError {
    ArchiveError::NoSuchName { name: name.to_owned() }
}

impl Archive {
    /// Writes the file with this name to `sink`. Returns its length in bytes.
    ///
    /// Each chunk is checked before it is written, and the whole at the end. After an error `sink`
    /// may have got the start of the file. Memory: one chunk, and one list for each height.
    ///
    /// # Errors
    /// * [`ArchiveError::NoSuchName`], [`ArchiveError::IsFolder`].
    /// * [`ArchiveError::Broken`] if a part is missing or is not what was imported.
    /// * [`ArchiveError::Write`] from the sink, and those of the store.
    pub fn export(&self, name: impl AsRef<[u8]>, sink: impl Write) -> Result<u64, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let (_, entry) = self.find(name.as_ref())?;
        self.export_entry(name, &entry, sink)
    }

    /// Writes the bytes of a file, found with this name, to `sink`, as [`export`](Self::export)
    /// does.
    ///
    /// # Errors
    /// As [`export`](Self::export). [`ArchiveError::Broken`] also if the version was removed
    /// meanwhile, and a collection, which does not wait here, has freed its chunks.
    pub fn export_entry(
        &self,
        name: impl AsRef<[u8]>,
        entry: &Entry,
        mut sink: impl Write,
    ) -> Result<u64, ArchiveError> {
        let Kind::File(file) = &entry.kind else {
            return Err(ArchiveError::IsFolder { name: name.as_ref().to_owned() });
        };
        let mut chunks = Chunks::new(self, name.as_ref(), file.content);
        while let Some(chunk) = chunks.next()? {
            sink.write_all(&chunk).map_err(ArchiveError::Write)?;
        }
        sink.flush().map_err(ArchiveError::Write)?;
        Ok(file.content.length)
    }

    /// Writes the file with this name to `path`. Returns its length in bytes.
    ///
    /// The bytes go to a temporary file in the same folder, which replaces `path` after all of them
    /// were checked and are on disk. Until then, and after an error, `path` is not changed, unless
    /// only the sync of its folder failed.
    ///
    /// # Errors
    /// As [`export`](Self::export).
    pub fn export_file(&self, name: impl AsRef<[u8]>, path: &Path) -> Result<u64, ArchiveError> {
        temporary::sweep(folder_of(path));
        let mut new = Replacement::of(path).map_err(ArchiveError::Write)?;
        let length = self.export(name, &mut new)?;
        new.finish(Readers::Usual).map_err(ArchiveError::Write)?;
        Ok(length)
    }
}
