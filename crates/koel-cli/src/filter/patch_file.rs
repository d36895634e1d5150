//! Patches as files: made of two filters, read, written, and what is wrong with one in a sentence.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use koel::{FilterView, PatchError};

use crate::closed;
use crate::failure::Failure;
use crate::filter::file::{self, FilterFile};
use crate::input;
use crate::output;

/// The first bytes of every patch.
const MAGIC: &[u8; 8] = b"koelptch";

/// Reads a patch from a file, or from standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut patch = Vec::new();
    let read = input::open_stream(path)?.0.read_to_end(&mut patch);
    read.map(|_| patch).map_err(|error| Failure::read(path, error))
}

/// Writes the patch that makes `new` of `old` to a file, or to standard output for `-`. Returns
/// the patch.
pub(crate) fn write(path: &Path, old: &Path, new: &Path) -> Result<Vec<u8>, Failure> {
    if fs::metadata(path).is_ok_and(|it| it.is_file()) && !output::is_stdout(path) {
        file::refuse_others(path, MAGIC, "a patch; choose another name, or remove it")?;
    }
    let [old_file, new_file] = [FilterFile::open(old)?, FilterFile::open(new)?];
    let (view, new_view) = (old_file.view()?, new_file.verified_view()?);
    let patch = view.patch_to(&new_view).map_err(|error| match error {
        PatchError::Incompatible { .. } | PatchError::Sizes { .. } | PatchError::Grown => {
            Failure::Usage(format!(
                "no patch makes {} of {}: {error}; `koel build --like {}` builds such a filter, \
                 of one built with --keys",
                new.display(),
                old.display(),
                old.display()
            ))
        }
        error => failure(&old_file, &view, path, error),
    })?;
    let written = if output::is_stdout(path) {
        closed::require_stdout().and_then(|()| io::stdout().write_all(&patch))
    } else {
        output::before_replacing(path)?;
        output::write_file(path, |sink| sink.write_all(&patch))
    };
    written.map(|()| patch).map_err(|error| Failure::write(path, error))
}

/// The failure of a patch at `path` for a filter.
pub(crate) fn failure(
    file: &FilterFile,
    filter: &FilterView<'_>,
    path: &Path,
    error: PatchError,
) -> Failure {
    match error {
        PatchError::Unsound(error) => file.failure(error),
        PatchError::Full(full) => Failure::Full {
            full,
            keys: filter.len(),
            remedy: "nothing was written; use the whole new filter instead of a patch".to_owned(),
        },
        error => Failure::Usage(format!("cannot use the patch {}: {error}", path.display())),
    }
}
