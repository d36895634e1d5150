//! Space kept for a full disk: a file of zeros in the folder of the store.
//!
//! Removing needs some space: deletions are appended to the log. So verbs that store something leave
//! this file behind, and verbs that remove something give it up first if the disk is full. A store
//! knows nothing of the file, and works without it.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Enough for the deletions of some thousand chunks, a manifest and a hint.
const BYTES: usize = 256 << 10;

/// The name of the file.
pub(super) const NAME: &str = "RESERVE";

/// Makes the reserve, as large as there is room. Without it a store works, so errors are ignored.
pub(super) fn fill(folder: &Path) {
    let path = path(folder);
    if path.symlink_metadata().is_ok() || is_full(folder) {
        return;
    }
    let filled = File::create_new(&path).and_then(|mut file| file.write_all(&[0; BYTES]));
    if filled.is_err() {
        fs::remove_file(&path).unwrap_or_default();
    }
}

/// Gives the reserve up if the disk is full.
pub(super) fn give_up_if_full(folder: &Path) {
    if is_full(folder) {
        fs::remove_file(path(folder)).unwrap_or_default();
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Whether the disk of a folder has less space than two reserves.
#[cfg(unix)]
fn is_full(folder: &Path) -> bool {
    let free = rustix::fs::statvfs(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    free.is_ok_and(|free| free < 2 * BYTES as u64)
}

/// Whether the disk is full is not known: there is no reserve.
#[cfg(not(unix))]
fn is_full(_folder: &Path) -> bool {
    true
}
