//! Reading what is stored: the chunks of a content, and the entries of a folder.
//!
//! Every list and chunk is compared with its hash, and the whole with the hash in its entry. A
//! reader holds one chunk, and one list for each height. No length in a record decides how much
//! memory is taken.

use super::archive::Archive;
use super::entry::{Content, DecodeError, Entry, Fields};
use super::error::ArchiveError;
use super::keys::{self, Hash};
use super::{chunks, names};

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
        let what = format!("chunk {}", self.chunks);
        let chunk = self.part(self.stored_chunk(&hash)?, &hash, &what)?;
        self.chunks += 1;
        self.length = self.length.saturating_add(chunk.len() as u64);
        if let Some(whole) = &mut self.whole {
            whole.update(&chunk);
        }
        Ok(Some(chunk))
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
            let stored = self.archive.store.get(&keys::list_key(&hash))?;
            let bytes = self.part(stored, &hash, &what)?;
            let (hashes, rest) = bytes.as_chunks::<32>();
            if !rest.is_empty() || hashes.is_empty() || hashes.len() > keys::LIST {
                return Err(self.broken(format!("{what} has the wrong length")));
            }
            self.lists.push(hashes.iter().rev().copied().collect());
        }
    }

    /// Returns a chunk that is stored as it is, or compressed.
    fn stored_chunk(&self, hash: &Hash) -> Result<Option<Vec<u8>>, ArchiveError> {
        let store = &self.archive.store;
        let plain = store.get(&keys::chunk_key(hash));
        if matches!(plain, Ok(Some(_))) {
            return Ok(plain?);
        }
        match store.get(&keys::packed_key(hash))? {
            None => Ok(plain?),
            // What cannot be decompressed has no hash, and is reported as a chunk of another one.
            Some(value) => Ok(Some(chunks::unpack(&value).unwrap_or(value))),
        }
    }

    /// Returns a chunk or a list, after comparing it with its hash.
    fn part(
        &self,
        stored: Option<Vec<u8>>,
        hash: &Hash,
        what: &str,
    ) -> Result<Vec<u8>, ArchiveError> {
        match stored {
            None => Err(self.broken(format!("{what} is missing"))),
            Some(bytes) if blake3::hash(&bytes) != *hash => {
                Err(self.broken(format!("{what} does not match its hash")))
            }
            Some(bytes) => Ok(bytes),
        }
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
