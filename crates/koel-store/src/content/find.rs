//! Finding an entry by its name, and visiting all entries below it.

use super::archive::Archive;
use super::entry::{Entry, Kind};
use super::error::ArchiveError;
use super::names;
use super::read::Listing;
use super::versions::Version;

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
            let Kind::Folder(content) = entry.kind else { return Err(missing()) };
            let mut listing = Listing::new(self, &path, content);
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
        let Kind::Folder(content) = entry.kind else { return Ok(()) };
        check_depth(path, depth)?;
        let mut listing = Listing::new(self, path, content);
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
