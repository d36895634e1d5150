//! Two filter files: compared for `koel similar` and `koel diff`, and the patch that makes one of
//! the other, which is made, read and written, and whose faults are told in a sentence.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use koel::{Comparison, Estimate, FilterView, PatchError};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::filter::file::{self, FilterFile};
use crate::quantity::{counted, to_u64};
use crate::{input, output, streams};

/// Compares two filters after a check of every byte: damaged ones would give wrong figures.
pub(crate) fn compare(first: &Path, second: &Path) -> Result<Comparison, Failure> {
    let files = [FilterFile::open(first)?, FilterFile::open(second)?];
    let views = [files[0].view()?, files[1].view()?];
    views[0].verify().map_err(|error| files[0].failure(error))?;
    views[1].verify().map_err(|error| files[1].failure(error))?;
    views[0].compare(&views[1]).map_err(|error| Failure::Merge { path: second.to_owned(), error })
}

/// Prints an estimate as "about 1,234 keys", with `noun` in place of "key".
pub(crate) fn about(estimate: Estimate, noun: &str) -> String {
    format!("about {}", counted(whole(estimate.value), noun))
}

/// The nearest number of keys.
pub(crate) fn whole(keys: f64) -> u64 {
    to_u64(keys.max(0.0).round())
}

/// An estimate as JSON.
pub(crate) fn numbers(estimate: Estimate) -> Value {
    json!({ "value": estimate.value, "standard_error": estimate.standard_error })
}

/// The first bytes of every patch.
const MAGIC: &[u8; 8] = b"koelptch";

/// Reads a patch from a file, or from standard input for `-`.
pub(crate) fn read_patch(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut patch = Vec::new();
    let read = input::open_stream(path)?.0.read_to_end(&mut patch);
    read.map(|_| patch).map_err(|error| Failure::read(path, error))
}

/// Writes the patch that makes `new` of `old` to a file, or to standard output for `-`. Returns
/// the patch.
pub(crate) fn write_patch(path: &Path, old: &Path, new: &Path) -> Result<Vec<u8>, Failure> {
    if fs::metadata(path).is_ok_and(|it| it.is_file()) && !output::is_stdout(path) {
        file::refuse_others(path, MAGIC, "a patch; choose another name, or remove it")?;
    }
    let [old_file, new_file] = [FilterFile::open(old)?, FilterFile::open(new)?];
    let (view, new_view) = (old_file.view()?, new_file.verified_view()?);
    let patch = view.patch_to(&new_view).map_err(|error| match error {
        PatchError::Incompatible { .. } | PatchError::Sizes { .. } => Failure::Usage(format!(
            "no patch can turn {} into {}: {error}; `koel build --like {}` builds such a filter, \
                 of one built with --keys",
            old.display(),
            new.display(),
            old.display()
        )),
        error @ PatchError::Sparse { .. } => Failure::Usage(format!(
            "no patch can turn {} into {}: {error}",
            old.display(),
            new.display()
        )),
        error => patch_failure(&old_file, &view, path, error),
    })?;
    let written = if output::is_stdout(path) {
        streams::require_stdout().and_then(|()| io::stdout().write_all(&patch))
    } else {
        output::before_replacing(path)?;
        output::write_file(path, |sink| sink.write_all(&patch))
    };
    written.map(|()| patch).map_err(|error| Failure::write(path, error))
}

/// The failure of a patch at `path` for a filter.
pub(crate) fn patch_failure(
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
        PatchError::Message(error) => Failure::Usage(format!("{} is {error}", path.display())),
        error => {
            // Corrections are content, so who has some of his own has another filter.
            let is_corrected =
                matches!(error, PatchError::WrongBase { .. }) && filter.corrections() > 0;
            let advice = if is_corrected {
                "; if it was corrected with koel refute since, patch the published file instead, and \
                 refute in a copy of that"
            } else {
                ""
            };
            Failure::Usage(format!("cannot use the patch {}: {error}{advice}", path.display()))
        }
    }
}
