//! Compares two filter files for `koel similar` and `koel diff`, and prints estimates.

use std::path::Path;

use koel::{Comparison, Estimate};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::filter::file::FilterFile;
use crate::quantity::{counted, to_u64};

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
