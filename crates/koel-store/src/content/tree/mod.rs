//! Folders of a disk: into an archive, and out of it.
//!
//! ```text
//! import        walks a folder of the disk       restore       walks the entries to restore
//! import_file   reads a file                     restore_leaf  writes a file or a link
//! before        what a folder has, and had       place         a folder to restore in
//! status        attributes and stamps            problem       what was not kept or restored
//! ```
//!
//! Both sides open every folder and file by its name in its folder, and follow no symbolic link. So
//! neither a link that is exchanged for a folder during an import, nor an archive that was made to
//! do so, leads out of the tree.

mod before;
mod import;
mod import_file;
mod place;
mod problem;
mod restore;
mod restore_leaf;
mod status;

pub use import::{TreeOptions, TreeReport};
pub use problem::Problem;
pub use restore::{RestoreOptions, RestoreReport, Selection, Target};
