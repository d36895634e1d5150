//! An archive: files in chunks, each chunk stored once, and every byte checked when it is read.
//!
//! A file is cut into [chunks](Chunking). A chunk is stored under its BLAKE3 hash, so equal chunks
//! of all files are one record. The manifest of a file is stored under its name. It lists the
//! chunks, and has the length and the BLAKE3 hash of the whole file. [`Archive::export`] checks
//! each chunk and the whole. [`Archive::export_file`] creates the file only after all of it was
//! checked.
//!
//! ```text
//! archive    the public type            names      names and their numbers
//! import     chunks in, manifest last   export     chunks out, checked
//! collect    drops unused chunks        verify     the checks of an export
//! repair     numbers that were lost     manifest   keys and records
//! chunks     cutting                    error      what can go wrong
//! ```
//!
//! An archive relies only on the store keeping writes in order:
//!
//! * Chunks are written before the lists that name them, and lists before the manifest.
//! * The number of a name is written before its manifest and removed after it.
//!
//! So after a crash every manifest has all its parts, and [`Archive::collect`] drops the rest. A
//! collection waits for imports and exports, and they wait for it.
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
mod error;
mod export;
mod import;
mod manifest;
mod names;
mod repair;
mod verify;

pub use archive::{Archive, FileInfo};
pub use chunks::Chunking;
pub use collect::{CollectProgress, CollectReport};
pub use error::ArchiveError;
pub use import::ImportReport;
pub use verify::ArchiveVerifyReport;
