//! Space kept for a full disk: a file of zeros in the folder of the store.
//!
//! Removing needs some space: deletions are appended to the log. So verbs that store something
//! leave this file behind, and verbs that remove something give it up first if the disk is full. A
//! store knows nothing of the file, and works without it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Enough for the deletions of the chunks of a segment, a manifest and a hint.
const MOST: u64 = 1 << 20;

/// A small store has less.
const LEAST: u64 = 64 << 10;

/// The name of the file.
pub(super) const NAME: &str = "RESERVE";

/// Makes the reserve. Without it a store works, so errors are ignored.
pub(super) fn fill(folder: &Path) {
    let path = path(folder);
    let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
    let before = if is_file { length(&path) } else { 0 };
    let missing = (store_bytes(folder) / 16).clamp(LEAST, MOST).saturating_sub(before);
    if missing == 0 || is_full(folder) || (!is_file && path.symlink_metadata().is_ok()) {
        return;
    }
    let opened = File::options().append(true).create(true).open(&path);
    let zeros = vec![0; usize::try_from(missing).unwrap_or_default()];
    if opened.and_then(|mut file| file.write_all(&zeros)).is_err() {
        fs::remove_file(&path).unwrap_or_default();
    }
}

/// Bytes of the files of a store.
fn store_bytes(folder: &Path) -> u64 {
    let files = folder.read_dir().into_iter().flatten().flatten();
    files.map(|file| length(&file.path())).sum()
}

fn length(file: &Path) -> u64 {
    file.metadata().map_or(0, |it| it.len())
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
    free.is_ok_and(|free| free < 2 * MOST)
}

/// Whether the disk is full is not known: there is no reserve.
#[cfg(not(unix))]
fn is_full(_folder: &Path) -> bool {
    true
}
