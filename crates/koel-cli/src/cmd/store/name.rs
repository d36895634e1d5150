//! Names of imported files on the command line, as `koel store ls` prints them.
//!
//! Slashes at both ends are ignored, so that a path is accepted that was imported as such.
#![forbid(unsafe_code)]

use std::ffi::OsStr;

use koel_store::content::normalize;
use serde_json::{Value, json};

use crate::escape::{escape, unescape};
use crate::failure::Failure;

/// The name that an argument stands for.
pub(super) fn name(printed: &OsStr) -> Result<Vec<u8>, Failure> {
    let name = normalize(&unescape(printed.as_encoded_bytes())?);
    if name.is_empty() {
        return Err(Failure::Usage(format!(
            "{} is not a name; `koel store ls` lists the names",
            printed.display()
        )));
    }
    Ok(name)
}

/// The names that arguments stand for.
pub(super) fn names(printed: &[impl AsRef<OsStr>]) -> Result<Vec<Vec<u8>>, Failure> {
    printed.iter().map(|printed| name(printed.as_ref())).collect()
}

/// The fields of a name in JSON, which has no bytes that are not UTF-8: `escaped` is exact.
pub(super) fn json_of(name: &[u8]) -> Value {
    json!({ "name": String::from_utf8_lossy(name), "escaped": escape(name) })
}

/// A name and what is wrong with it, in JSON.
#[cfg(unix)]
pub(super) fn json_of_problem(name: &[u8], what: &str) -> Value {
    let mut object = json_of(name);
    object["what"] = what.into();
    object
}

/// Reports on standard error what is wrong with some files.
#[cfg(unix)]
pub(super) fn report_problems<'a>(
    problems: impl IntoIterator<Item = (&'a [u8], &'a str)>,
) -> Result<(), Failure> {
    problems.into_iter().try_for_each(|(name, what)| {
        crate::output::print_to_stderr(&format!("koel: {}: {what}\n", escape(name)))
    })
}
