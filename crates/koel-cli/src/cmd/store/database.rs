//! Opens the store in the folder `--db`.
//!
//! Only verbs that store something create a store; the others fail if there is none. Verbs that
//! change nothing open the store read-only, so several can run at once, even on a full or read-only
//! disk. After a crash, opening may drop an incomplete write, which was never acknowledged as
//! durable. A message on standard error says so.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use koel_store::content::ArchiveError;
use koel_store::{Error, LogStore, Options};

use crate::escape::escape;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Database {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    db: PathBuf,
}

impl Database {
    /// The store in the folder `db`.
    pub(crate) fn at(db: &Path) -> Self {
        Self { db: db.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.db
    }

    /// Whether the folder has any file of a store.
    pub(crate) fn has_any_file(&self) -> bool {
        let is_log = |path: PathBuf| path.extension().is_some_and(|suffix| suffix == "log");
        let mut files = self.db.read_dir().into_iter().flatten().flatten();
        self.exists() || files.any(|file| is_log(file.path()))
    }

    /// Whether the folder has a store.
    pub(crate) fn exists(&self) -> bool {
        self.db.join("MANIFEST").is_file()
    }

    /// Opens an existing store to change it.
    pub(crate) fn open(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        self.open_or_create()
    }

    /// Opens an existing store read-only.
    pub(crate) fn read(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        self.open_with(Options::default().read_only(true), "ignored")
    }

    fn check_that_it_exists(&self) -> Result<(), Failure> {
        if !self.exists() {
            return Err(Failure::Usage(format!(
                "{} is not a store: it has no file MANIFEST; check the name, or create a store \
                 with `koel store import` or `koel store put`",
                self.db.display()
            )));
        }
        Ok(())
    }

    /// Opens a store, or creates an empty one.
    pub(crate) fn open_or_create(&self) -> Result<LogStore, Failure> {
        // A command ends before a background thread does anything useful.
        self.open_with(Options::default().background_compaction(false), "removed")
    }

    fn open_with(&self, options: Options, what_was_done: &str) -> Result<LogStore, Failure> {
        let store = options.open(&self.db).map_err(|error| self.failure(error))?;
        if let Some(torn) = &store.open_report().torn {
            output::print_to_stderr(&format!(
                "koel: {}: {what_was_done} {} bytes of an interrupted write in {}; no durable data \
                 is lost\n",
                self.db.display(),
                torn.bytes,
                torn.file
            ))?;
        }
        Ok(store)
    }

    /// Whether `folder` is the folder of the store.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| real(&self.db) == Some(folder))
    }

    /// Whether a file, at the end of all symbolic links, is or would be in the folder of the store.
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
