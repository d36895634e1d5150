//! Opens the store in the folder `--db`.
//!
//! Only verbs that store something create a store; the others fail if there is none. Verbs that
//! change nothing open the store read-only, so several can run at once, even on a full or read-only
//! disk. After a crash, opening may drop an incomplete write, which was never acknowledged as
//! durable. A message on standard error says so.
//!
//! The folder says which kind of store it has. Verbs of records work on both kinds ([`Records`]);
//! verbs of files need a log store.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use koel_store::content::{Archive, ArchiveError};
use koel_store::{
    Batch, Durability, Error, LogOptions, LogStore, LsmOptions, LsmStore, StoreKind, TornEnd,
};

use crate::cmd::store::reserve;
use crate::escape::escape;
use crate::failure::Failure;
use crate::output;

/// What a verb opens a store for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// To read it.
    Read,
    /// To remove something from it, which takes some space.
    Change,
    /// To store something in it. Creates an empty store if there is none.
    Create,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Database {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    db: PathBuf,

    /// Seconds to wait while another process uses the store
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT)]
    wait: u64,
}

/// How long a command waits for others, in seconds.
const WAIT: u64 = 30;

/// The wait before a message says so.
const SILENT: Duration = Duration::from_secs(1);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

impl Database {
    /// The store in the folder `db`.
    pub(crate) fn at(db: &Path) -> Self {
        Self { db: db.to_owned(), wait: WAIT }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.db
    }

    /// Whether the folder has any file of a store.
    pub(crate) fn has_any_file(&self) -> bool {
        self.exists() || self.has_file(&["log", "table"])
    }

    /// Whether the folder has a file with one of these suffixes.
    fn has_file(&self, suffixes: &[&str]) -> bool {
        let is_one = |path: PathBuf| {
            path.extension().is_some_and(|suffix| suffixes.iter().any(|one| suffix == *one))
        };
        let mut files = self.db.read_dir().into_iter().flatten().flatten();
        files.any(|file| is_one(file.path()))
    }

    /// Whether the folder has a store.
    pub(crate) fn exists(&self) -> bool {
        self.db.join("MANIFEST").is_file()
    }

    /// Opens a store of either kind. A new one is a log store.
    pub(super) fn open(&self, access: Access) -> Result<Records, Failure> {
        Ok(match self.kind(access)? {
            Some(StoreKind::Lsm) => self.ordered(access, LsmOptions::default())?.into(),
            _ => self.log(access)?.into(),
        })
    }

    /// Opens a log store.
    pub(super) fn log(&self, access: Access) -> Result<LogStore, Failure> {
        let advice = "an ordered store, which holds no files; use koel store get, put, del, keys \
                      or scan, or name a log store";
        self.prepare(access, StoreKind::Lsm, advice)?;
        // A command ends before a background thread does anything useful.
        let options = LogOptions::default().background_compaction(false);
        let options = options.read_only(access == Access::Read);
        let store = self.waiting(|| options.clone().open(&self.db))?;
        self.report_torn(store.open_report().torn.as_ref(), access)?;
        Ok(store)
    }

    /// Opens an ordered store.
    pub(super) fn ordered(&self, access: Access, options: LsmOptions) -> Result<LsmStore, Failure> {
        let advice = "a log store, which has no order of keys; copy it into an ordered store with \
                      `koel store copy`";
        self.prepare(access, StoreKind::Log, advice)?;
        let options = options.read_only(access == Access::Read);
        let store = self.waiting(|| options.clone().open(&self.db))?;
        self.report_torn(store.open_report().torn.as_ref(), access)?;
        Ok(store)
    }

    /// Fails if the folder cannot be opened as asked for, or has a store of the other kind.
    fn prepare(&self, access: Access, other: StoreKind, advice: &str) -> Result<(), Failure> {
        let kind = self.kind(access)?;
        if access == Access::Change {
            reserve::give_up_if_full(&self.db);
        }
        if kind == Some(other) {
            return Err(Failure::about(&self.db, format!("is {advice}")));
        }
        self.refuse_other_folder()
    }

    /// The kind of the store in the folder. Only if a store may be created there can be none.
    pub(super) fn kind(&self, access: Access) -> Result<Option<StoreKind>, Failure> {
        if access != Access::Create && !self.exists() {
            let sentence = "is not a store: it has no file MANIFEST; check the name, or create a \
                            store with `koel store create`, `put` or `import`";
            return Err(Failure::about(&self.db, sentence));
        }
        StoreKind::of(&self.db).map_err(|error| self.failure(error))
    }

    /// Whether the folder has an ordered store, perhaps a damaged one.
    pub(super) fn looks_ordered(&self) -> bool {
        match StoreKind::of(&self.db) {
            Ok(Some(kind)) => kind == StoreKind::Lsm,
            _ => self.has_file(&["table"]),
        }
    }

    /// Fails if the folder has a store, or what else is named a new folder.
    pub(super) fn refuse_if(&self, has_store: bool) -> Result<(), Failure> {
        let failure = || Failure::about(&self.db, "already has a store; name a new folder");
        if has_store { Err(failure()) } else { Ok(()) }
    }

    /// Calls `open` until no other process has the store, or the wait is over.
    fn waiting<T>(&self, open: impl Fn() -> Result<T, Error>) -> Result<T, Failure> {
        let (started, mut is_told) = (Instant::now(), false);
        loop {
            let waited = started.elapsed();
            match open() {
                Err(Error::Locked) if waited < Duration::from_secs(self.wait) => {}
                Err(Error::Locked) => {
                    return Err(Failure::Usage(format!(
                        "{}: another process uses the store, and did not end in {} seconds; wait \
                         longer with --wait SECONDS",
                        self.db.display(),
                        self.wait
                    )));
                }
                opened => return opened.map_err(|error| self.failure(error)),
            }
            if waited > SILENT && !is_told {
                is_told = true;
                output::say_of(&self.db, "waiting for another process that uses the store")?;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Fails if the folder has files, but none of a store: a store is not put beside other files.
    fn refuse_other_folder(&self) -> Result<(), Failure> {
        if self.has_any_file() {
            return Ok(());
        }
        let mut names = self.db.read_dir().into_iter().flatten().flatten().map(|it| it.file_name());
        let is_own = |name: &OsString| {
            [OsStr::new("LOCK"), OsStr::new(reserve::NAME), OsStr::new("lost+found")]
                .contains(&name.as_os_str())
                || name.as_encoded_bytes().starts_with(b"MANIFEST")
                || is_numbered(name)
        };
        match names.find(|name| !is_own(name)) {
            None => Ok(()),
            Some(name) => Err(Failure::Usage(format!(
                "{} is not a store: it has other files, such as {}; name a new or an empty folder",
                self.db.display(),
                name.display()
            ))),
        }
    }

    /// Reports on standard error that a crash had interrupted a write.
    fn report_torn(&self, torn: Option<&TornEnd>, access: Access) -> Result<(), Failure> {
        let Some(torn) = torn else { return Ok(()) };
        let what_was_done = if access == Access::Read { "ignored" } else { "removed" };
        let TornEnd { bytes, file, .. } = torn;
        let what = format!("{what_was_done} {bytes} bytes of an interrupted write in {file}");
        output::say_of(&self.db, &format!("{what}; no durable data is lost"))
    }

    /// Whether `folder` is the folder of the store.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| real(&self.db) == Some(folder))
    }

    /// Whether a file, at the end of all symbolic links, is or would be in the folder of the store.
    #[cfg(unix)]
    pub(crate) fn contains(&self, file: &Path) -> bool {
        let real = output::resolve_links(file).unwrap_or_else(|_| file.to_owned());
        match real.parent() {
            Some(folder) if folder != Path::new("") => self.is_in(folder),
            _ => self.is_in(Path::new(".")),
        }
    }

    /// Closes a store, which makes everything durable.
    pub(super) fn close(&self, store: impl Into<Records>) -> Result<(), Failure> {
        store.into().close().map_err(|error| self.failure(error))
    }

    /// Closes a store that was changed, and leaves some space for the day when the disk is full.
    pub(super) fn close_changed(&self, store: impl Into<Records>) -> Result<(), Failure> {
        let closed = self.close(store);
        reserve::fill(&self.db);
        closed
    }

    /// Reports what was done before an error ended the command.
    pub(super) fn report_done(&self, done: &str) -> Result<(), Failure> {
        output::say_of(&self.db, &format!("{done} before the error that follows"))
    }

    /// Reports on standard error that a name to remove is not in the store.
    pub(crate) fn report_not_found(&self, name: &[u8]) -> Result<(), Failure> {
        output::say_of(&self.db, &format!("\"{}\" not found", escape(name)))
    }

    pub(crate) fn failure(&self, error: Error) -> Failure {
        self.archive_failure(error.into())
    }

    /// The failure of reading a value.
    pub(crate) fn read_failure(&self, error: io::Error) -> Failure {
        match error.downcast::<Error>() {
            Ok(error) => self.failure(error),
            Err(error) => Failure::read(&self.db, error),
        }
    }

    pub(crate) fn archive_failure(&self, error: ArchiveError) -> Failure {
        Failure::Store { db: self.db.clone(), error: Box::new(error) }
    }
}

/// Whether it is the name of a file of a store, which another process may be creating: its first
/// file is there before the manifest.
fn is_numbered(name: &OsStr) -> bool {
    let stem = Path::new(name).file_stem().unwrap_or_default().as_encoded_bytes();
    stem.len() == 16 && stem.iter().all(u8::is_ascii_hexdigit)
}

/// An open store.
#[derive(Debug)]
pub(super) enum Records {
    Log(LogStore),
    Ordered(LsmStore),
}

/// A value to store.
pub(super) enum Value {
    Whole(Vec<u8>),
    /// So many bytes to stream.
    Stream {
        source: Box<dyn Read>,
        length: u64,
    },
}

impl From<LogStore> for Records {
    fn from(store: LogStore) -> Self {
        Self::Log(store)
    }
}

impl From<LsmStore> for Records {
    fn from(store: LsmStore) -> Self {
        Self::Ordered(store)
    }
}

impl Records {
    /// The value of a key, to be read.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<Box<dyn Read>>, Error> {
        Ok(match self {
            Self::Log(store) => store.get_reader(key)?.map(|value| Box::new(value) as _),
            Self::Ordered(store) => {
                store.get(key)?.map(|value| Box::new(io::Cursor::new(value)) as _)
            }
        })
    }

    /// Stores a record. An ordered store reads a file into memory first.
    pub(super) fn put(
        &self,
        key: &[u8],
        value: Value,
        durability: Durability,
    ) -> Result<(), Error> {
        let bytes = match (self, value) {
            (Self::Log(store), Value::Stream { source, length }) => {
                return store.put_reader(key, length, source, durability);
            }
            (_, Value::Whole(bytes)) => bytes,
            (Self::Ordered(_), Value::Stream { source, length }) => {
                let limit = LsmStore::MAX_VALUE_BYTES;
                if length > limit {
                    return Err(Error::TooLong { what: "value", len: length, max: limit });
                }
                let mut bytes = Vec::new();
                let read = source.take(limit + 1).read_to_end(&mut bytes);
                read.map_err(|error| Error::Source { error })?;
                bytes
            }
        };
        match self {
            Self::Log(store) => store.put(key, &bytes, durability),
            Self::Ordered(store) => store.put(key, &bytes, durability),
        }
    }

    /// Stores the records of a batch.
    pub(super) fn write(&self, batch: &Batch) -> Result<(), Error> {
        match self {
            Self::Log(store) => store.write(batch, Durability::None),
            Self::Ordered(store) => store.write(batch, Durability::None),
        }
    }

    /// Deletes a record. False if there was none.
    pub(super) fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        match self {
            Self::Log(store) => store.delete(key, Durability::None),
            Self::Ordered(store) => {
                let is_there = store.contains(key)?;
                if is_there {
                    store.delete(key, Durability::None)?;
                }
                Ok(is_there)
            }
        }
    }

    /// Passes the keys that start with `prefix` to `take`. An ordered store has them in byte order,
    /// a log store in the order in which their values were written. Skips damaged records, and
    /// returns the first damage.
    pub(super) fn each_key(
        &self,
        prefix: &[u8],
        failure: impl Fn(Error) -> Failure,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Option<Error>, Failure> {
        let mut damage = None;
        let mut pass = |key: Result<Vec<u8>, Error>| match key {
            Ok(key) if Archive::is_reserved(&key) || !key.starts_with(prefix) => Ok(()),
            Ok(key) => take(&key),
            Err(error @ Error::Damaged { .. }) => {
                damage.get_or_insert(error);
                Ok(())
            }
            Err(error) => Err(failure(error)),
        };
        match self {
            Self::Log(store) => store.keys().try_for_each(&mut pass)?,
            Self::Ordered(store) => {
                let range = store.prefix(prefix).map_err(&failure)?;
                range.map(|entry| entry.map(|(key, _)| key)).try_for_each(&mut pass)?;
            }
        }
        Ok(damage)
    }

    /// Closes the store, which makes everything durable.
    pub(super) fn close(self) -> Result<(), Error> {
        match self {
            Self::Log(store) => store.close(),
            Self::Ordered(store) => store.close(),
        }
    }
}
