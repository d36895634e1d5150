//! Folders of a disk: into an archive, and out of it.
//!
//! ```text
//! import    walks a folder, reads files      restore   walks entries, writes files and links
//! status    attributes and stamps            place     a folder to restore in
//!                                            problem   what was not kept or restored
//! ```
//!
//! Both sides open every folder and file by its name in its folder, and follow no symbolic link. So
//! neither a link that is exchanged for a folder during an import, nor an archive that was made to
//! do so, leads out of the tree.

mod import;
mod place;
mod problem;
mod restore;
mod status;

pub use import::{TreeOptions, TreeReport};
pub use problem::Problem;
pub use restore::{RestoreOptions, RestoreReport, Selection, Target};
