//! Folders of a disk: into an archive, and out of it.
//!
//! ```text
//! import    walks a folder, reads files      restore   walks entries, writes files and links
//! place     files and folders on disk: attributes and stamps, a folder to restore in
//! ```
//!
//! Both sides open every folder and file by its name in its folder, and follow no symbolic link. So
//! neither a link that is exchanged for a folder during an import, nor an archive that was made to
//! do so, leads out of the tree.

mod import;
mod place;
mod restore;

pub use import::{TreeOptions, TreeReport};
pub use restore::{RestoreOptions, RestoreReport, Selection, Target};

/// Something that was not kept by an import, or not restored by an export.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The name of the file, from the name that was imported.
    pub name: Vec<u8>,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    /// Returns a problem with this file.
    #[must_use]
    pub fn new(name: impl Into<Vec<u8>>, what: impl Into<String>) -> Self {
        Self { name: name.into(), what: what.into() }
    }
}
