//! Names of imported files on the command line, as `koel store ls` prints them.
//!
//! Slashes at both ends are ignored, so that a path is accepted that was imported as such.

use std::ffi::OsStr;
use std::path::Path;

#[cfg(unix)]
use koel_store::content::Problem;
use koel_store::content::{Archive, ArchiveError, Entry, normalize};
use serde_json::{Value, json};

use crate::escape::{escape, unescape};
use crate::failure::Failure;
#[cfg(unix)]
use crate::quantity::grouped;
#[cfg(unix)]
use crate::report::Report;

/// The name that an argument stands for.
pub(super) fn name(printed: &OsStr) -> Result<Vec<u8>, Failure> {
    let name = normalize(&unescape(printed.as_encoded_bytes())?);
    if name.is_empty() {
        let sentence = "is not a name; `koel store ls` lists the names";
        return Err(Failure::about(Path::new(printed), sentence));
    }
    Ok(name)
}

/// The names that arguments stand for.
pub(super) fn names(printed: &[impl AsRef<OsStr>]) -> Result<Vec<Vec<u8>>, Failure> {
    printed.iter().map(|printed| name(printed.as_ref())).collect()
}

/// A name and what is stored under it, or the damage that hides it.
pub(super) type Found = Result<(Vec<u8>, Entry), ArchiveError>;

/// What is stored under these names, or under all: the newest versions, or one that is asked for.
pub(super) fn entries<'a>(
    archive: &'a Archive,
    names: Vec<Vec<u8>>,
    version: Option<u64>,
) -> Result<Box<dyn Iterator<Item = Found> + 'a>, ArchiveError> {
    let version = version.map(|number| archive.version(number)).transpose()?;
    Ok(match version {
        Some(version) if names.is_empty() => {
            Box::new(std::iter::once(Ok((version.name, version.entry))))
        }
        None if names.is_empty() => {
            let newest = archive.entries()?;
            Box::new(newest.map(|version| version.map(|it| (it.name, it.entry))))
        }
        version => Box::new(names.into_iter().map(move |name| {
            let entry = match &version {
                Some(version) => archive.find_in(version, &name)?,
                None => archive.find(&name)?.1,
            };
            Ok((name, entry))
        })),
    })
}

/// The fields of a name in JSON, which has no bytes that are not UTF-8: `escaped` is exact.
pub(super) fn json_of(name: &[u8]) -> Value {
    json!({ "name": String::from_utf8_lossy(name), "escaped": escape(name) })
}

/// Adds the files with problems to a report.
#[cfg(unix)]
pub(super) fn add_problems(
    report: &mut Report,
    name: &str,
    label: &'static str,
    problems: &[Problem],
) {
    let in_json = problems.iter().map(|problem| {
        let mut object = json_of(&problem.name);
        object["what"] = (&*problem.what).into();
        object
    });
    report.json(name, in_json.collect::<Vec<_>>());
    if !problems.is_empty() {
        report.row(label, grouped(problems.len() as u64));
    }
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
