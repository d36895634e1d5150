//! The folder of a store as an argument, and how it is opened.
//!
//! Only verbs that put something in create a store; the others say that there is none. Verbs that change nothing open it for
//! reading alone, so they do their work beside each other, and on a disk that is full or takes no writes. What opening had to cut off or leave out, after a crash, is told
//! on standard error: it was never acknowledged as durable, but it was written.
#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use koel_store::content::{Archive, ArchiveError};
use koel_store::{Error, LogStore, Options};

use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Database {
    /// The folder of the store
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

    /// Whether the folder has files as a store has, if not all.
    pub(crate) fn has_left_anything(&self) -> bool {
        let is_log = |path: PathBuf| path.extension().is_some_and(|suffix| suffix == "log");
        let mut files = self.db.read_dir().into_iter().flatten().flatten();
        self.exists() || files.any(|file| is_log(file.path()))
    }

    /// Whether the folder has a store.
    pub(crate) fn exists(&self) -> bool {
        self.db.join("MANIFEST").is_file()
    }

    /// Opens a store that exists, to change it.
    pub(crate) fn open(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        self.open_or_create()
    }

    /// Opens a store that exists, to read it: beside others who do, and on a disk that takes no writes.
    pub(crate) fn read(&self) -> Result<LogStore, Failure> {
        self.check_that_it_exists()?;
        self.open_with(Options::default().read_only(true), "left out")
    }

    fn check_that_it_exists(&self) -> Result<(), Failure> {
        if !self.exists() {
            return Err(Failure::Usage(format!(
                "there is no store in {}, no file MANIFEST; check the name, or make one with `koel store import` or `put`",
                self.db.display()
            )));
        }
        Ok(())
    }

    /// Opens a store, or makes an empty one.
    pub(crate) fn open_or_create(&self) -> Result<LogStore, Failure> {
        // A command ends before a thread in the background did anything of use.
        self.open_with(Options::default().background_compaction(false), "cut off")
    }

    fn open_with(&self, options: Options, what_was_done: &str) -> Result<LogStore, Failure> {
        let store = options.open(&self.db).map_err(|error| self.failure(error))?;
        if let Some(torn) = &store.opened().torn {
            output::print_aside(&format!(
                "koel: {}: {what_was_done} {} bytes that an interrupted write left in {}; nothing durable was in them\n",
                self.db.display(),
                torn.bytes,
                torn.file
            ))?;
        }
        Ok(store)
    }

    /// Whether this is the folder of the store.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| real(&self.db) == Some(folder))
    }

    /// Whether a file is, or would be, in the folder of the store, at the end of all symbolic links.
    pub(crate) fn has(&self, file: &Path) -> bool {
        let real = output::target_of(file).unwrap_or_else(|_| file.to_owned());
        match real.parent() {
            Some(folder) if folder != Path::new("") => self.is_in(folder),
            _ => self.is_in(Path::new(".")),
        }
    }

    /// Closes a store, which makes everything durable.
    pub(crate) fn close(&self, store: LogStore) -> Result<(), Failure> {
        store.close().map_err(|error| self.failure(error))
    }

    /// Says that a name is not in the store, to whoever asked to take it out.
    pub(crate) fn not_there(&self, name: &str) -> Result<(), Failure> {
        output::print_aside(&format!("koel: {}: {name:?} is not there\n", self.db.display()))
    }

    pub(crate) fn failure(&self, error: Error) -> Failure {
        self.archive_failure(error.into())
    }

    /// A value that could not be read to its end.
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

/// A key as a person types it: its bytes. Those of an archive are refused, since a record there would be taken for a part of a file.
pub(crate) fn key(text: &OsStr) -> Result<&[u8], Failure> {
    let key = text.as_encoded_bytes();
    if Archive::is_reserved(key) {
        return Err(Failure::Usage(
            "keys that begin with the byte FF belong to imported files; choose another key"
                .to_owned(),
        ));
    }
    Ok(key)
}
