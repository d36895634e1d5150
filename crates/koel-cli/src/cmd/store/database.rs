//! Opens the store in the folder `--db`.
//!
//! Only verbs that store something create a store; the others fail if there is none. Verbs that
//! change nothing open the store read-only, so several can run at once, even on a full or read-only
//! disk. After a crash, opening may drop an incomplete write, which was never acknowledged as
//! durable. A message on standard error says so.
//!
//! The folder says which kind of store it has. Verbs of records work on both kinds ([`Records`]);
//! verbs of files need a log store.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use koel_store::content::ArchiveError;
use koel_store::{Error, LogOptions, LogStore, LsmOptions, LsmStats, LsmStore, StoreKind, TornEnd};

use super::records::Records;
use super::reserve;
use crate::escape::escape;
use crate::failure::Failure;
use crate::output;

/// What a command does about an interrupted write: nothing if it opened the store read-only.
const IGNORED: &str = "ignored";
const REMOVED: &str = "removed";

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

    /// Opens an existing log store to remove something from it, which takes some space.
    pub(crate) fn open(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        reserve::give_up_if_full(&self.db);
        self.open_or_create()
    }

    /// Opens an existing log store read-only.
    pub(crate) fn read(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        self.open_log(LogOptions::default().read_only(true), IGNORED)
    }

    /// Opens a log store, or creates an empty one.
    pub(crate) fn open_or_create(&self) -> Result<LogStore, Failure> {
        // A command ends before a background thread does anything useful.
        self.open_log(LogOptions::default().background_compaction(false), REMOVED)
    }

    /// Opens an existing store of either kind to remove something from it.
    pub(super) fn records(&self) -> Result<Records, Failure> {
        self.check_that_it_exists()?;
        reserve::give_up_if_full(&self.db);
        self.records_or_create()
    }

    /// Opens an existing store of either kind read-only.
    pub(super) fn read_records(&self) -> Result<Records, Failure> {
        self.check_that_it_exists()?;
        match self.kind()? {
            Some(StoreKind::Lsm) => self.read_ordered().map(Records::Ordered),
            _ => self.read().map(Records::Log),
        }
    }

    /// Leaves some space for the day when the disk is full.
    pub(super) fn keep_reserve(&self) {
        reserve::fill(&self.db);
    }

    /// Opens a store of either kind, or creates an empty log store.
    pub(super) fn records_or_create(&self) -> Result<Records, Failure> {
        match self.kind()? {
            Some(StoreKind::Lsm) => self.create_ordered(),
            _ => self.open_or_create().map(Records::Log),
        }
    }

    /// Opens an existing ordered store read-only.
    pub(super) fn read_ordered(&self) -> Result<LsmStore, Failure> {
        self.check_that_it_exists()?;
        self.open_lsm(LsmOptions::default().read_only(true), IGNORED)
    }

    /// Opens an existing ordered store to change it.
    pub(super) fn open_ordered(&self) -> Result<LsmStore, Failure> {
        self.check_that_it_exists()?;
        reserve::give_up_if_full(&self.db);
        self.create_ordered_store()
    }

    /// Opens an ordered store, or creates an empty one.
    pub(super) fn create_ordered(&self) -> Result<Records, Failure> {
        self.create_ordered_store().map(Records::Ordered)
    }

    /// [`create_ordered`](Self::create_ordered), for verbs that know the kind.
    pub(super) fn create_ordered_store(&self) -> Result<LsmStore, Failure> {
        self.open_lsm(LsmOptions::default(), REMOVED)
    }

    /// Whether the folder has an ordered store.
    pub(super) fn is_ordered(&self) -> Result<bool, Failure> {
        Ok(self.kind()? == Some(StoreKind::Lsm))
    }

    /// Whether the folder has an ordered store, perhaps a damaged one.
    pub(super) fn looks_ordered(&self) -> bool {
        match StoreKind::of(&self.db) {
            Ok(Some(kind)) => kind == StoreKind::Lsm,
            _ => self.has_file(&["table"]),
        }
    }

    /// The kind of the store in the folder, if there is one.
    fn kind(&self) -> Result<Option<StoreKind>, Failure> {
        StoreKind::of(&self.db).map_err(|error| self.failure(error))
    }

    fn check_that_it_exists(&self) -> Result<(), Failure> {
        if !self.exists() {
            return Err(Failure::Usage(format!(
                "{} is not a store: it has no file MANIFEST; check the name, or create a store \
                 with `koel store create`, `put` or `import`",
                self.db.display()
            )));
        }
        Ok(())
    }

    fn open_log(&self, options: LogOptions, what_was_done: &str) -> Result<LogStore, Failure> {
        if self.kind()? == Some(StoreKind::Lsm) {
            return Err(Failure::Usage(format!(
                "{} is an ordered store, which holds no files; use koel store get, put, del, keys \
                 or scan, or name a log store",
                self.db.display()
            )));
        }
        self.refuse_other_folder()?;
        let store = self.waiting(|| options.clone().open(&self.db))?;
        self.report_torn(store.open_report().torn.as_ref(), what_was_done)?;
        Ok(store)
    }

    fn open_lsm(&self, options: LsmOptions, what_was_done: &str) -> Result<LsmStore, Failure> {
        if self.kind()? == Some(StoreKind::Log) {
            return Err(Failure::Usage(format!(
                "{} is a log store, which has no order of keys; copy it into an ordered store with \
                 `koel store copy`",
                self.db.display()
            )));
        }
        self.refuse_other_folder()?;
        let store = self.waiting(|| options.clone().open(&self.db))?;
        self.report_torn(store.open_report().torn.as_ref(), what_was_done)?;
        Ok(store)
    }

    /// The statistics of an ordered store, its guide included.
    pub(super) fn ordered_stats(&self) -> Result<LsmStats, Failure> {
        self.check_that_it_exists()?;
        // Builds the guide at once.
        let options = LsmOptions::default().read_only(true).background(false);
        Ok(self.open_lsm(options, IGNORED)?.stats())
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
                output::print_to_stderr(&format!(
                    "koel: {}: waiting for another process that uses the store\n",
                    self.db.display()
                ))?;
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
    fn report_torn(&self, torn: Option<&TornEnd>, what_was_done: &str) -> Result<(), Failure> {
        let Some(torn) = torn else { return Ok(()) };
        output::print_to_stderr(&format!(
            "koel: {}: {what_was_done} {} bytes of an interrupted write in {}; no durable data is \
             lost\n",
            self.db.display(),
            torn.bytes,
            torn.file
        ))
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
    pub(crate) fn close(&self, store: LogStore) -> Result<(), Failure> {
        store.close().map_err(|error| self.failure(error))
    }

    /// Reports on standard error that a name to remove is not in the store.
    pub(crate) fn report_not_found(&self, name: &[u8]) -> Result<(), Failure> {
        let name = escape(name);
        output::print_to_stderr(&format!("koel: {}: \"{name}\" not found\n", self.db.display()))
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
