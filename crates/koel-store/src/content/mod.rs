//! An archive: files in chunks, each chunk stored once, and every byte checked when it is read.
//!
//! A file is cut into [chunks](Chunking). A chunk is stored under its BLAKE3 hash, so equal chunks
//! of all files are one record. A folder is stored like a file, whose bytes are its entries: names,
//! attributes, and the hashes of their bytes. What is imported under a name becomes a new
//! [`Version`] of it; older versions stay until they are removed. [`Archive::export`] checks each
//! chunk and the whole. [`Archive::export_file`] creates the file only after all of it was checked.
//!
//! ```text
//! archive    the public type            names      which are allowed, how they are printed
//! import     a stream in                read       files and entries out, checked
//! versions   what a name had when       edit       adding, removing and repairing versions
//! entry      a file, a folder, a link   error      what can go wrong
//! collect    drops unused chunks        verify     the checks of an export
//! chunks     cutting and compressing    keys       keys and small records
//! tree/      folders of a disk (Unix)   temporary  names of files that are not complete
//! ```
//!
//! An archive relies only on the store keeping writes in order: chunks are written before the lists
//! that name them, lists and files before their folders, and the version last, in one batch with
//! the list of its name. So after a crash every version has all its parts, and
//! [`Archive::collect`] drops the rest. A collection waits for imports and exports, and they wait
//! for it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use koel_store::LogStore;
//! use koel_store::content::{Archive, Chunking};
//!
//! let archive = Archive::new(LogStore::open(folder.path())?);
//! let text = b"all work and no play ".repeat(100_000);
//! let first = archive.import("novel", &text[..], Chunking::default())?;
//! let again = archive.import("copy", &text[..], Chunking::default())?;
//! assert_eq!((first.length, first.chunks), (2_100_000, 129));
//! assert_eq!(again.new_chunks, 0);
//!
//! let mut out = Vec::new();
//! archive.export("novel", &mut out)?;
//! assert_eq!(out, text);
//! # Ok(())
//! # }
//! ```

mod archive;
mod chunks;
mod collect;
mod edit;
mod entry;
mod error;
mod import;
mod keys;
mod names;
mod read;
mod temporary;
#[cfg(unix)]
mod tree;
mod verify;
mod versions;

/// Replacing a file in one step, and removing what killed processes have left of that.
pub mod replace {
    pub use super::temporary::sweep;
    pub use koel::file::{Readers, Replacement, folder_of};
}

pub use archive::Archive;
pub use chunks::Chunking;
pub use collect::{CollectProgress, CollectReport};
pub use entry::{Attributes, Content, Entry, Kind, StoredFile, Time};
pub use error::ArchiveError;
pub use import::ImportReport;
pub use names::{escape, normalize, unescape};
#[cfg(unix)]
pub use tree::{
    Problem, RestoreOptions, RestoreReport, Selection, Target, TreeOptions, TreeReport,
};
pub use verify::ArchiveVerifyReport;
pub use versions::Version;
