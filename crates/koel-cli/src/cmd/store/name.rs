//! Names of imported files on the command line, as `koel store ls` prints them.
//!
//! Slashes at both ends are ignored, so that a path is accepted that was imported as such.
//!
//! Patterns that select what is exported.
//!
//! A pattern without a slash is compared with the last component of a name, one with a slash with
//! the whole name. A folder that matches stands for all that is in it.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use koel_store::content::{Archive, ArchiveError, Entry, Selection, normalize};
use serde_json::{Value, json};

use crate::escape::{escape, unescape};
use crate::failure::Failure;
#[cfg(unix)]
use crate::quantity::grouped;
#[cfg(unix)]
use crate::report::Report;
#[cfg(unix)]
use koel_store::content::Problem;

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

/// What to restore and what to leave out.
pub(super) struct Patterns {
    include: Option<Set>,
    exclude: Set,
}

/// Patterns of one option.
struct Set {
    /// For the last component.
    names: GlobSet,
    /// For the whole name.
    paths: GlobSet,
}

impl Patterns {
    pub(super) fn new(include: &[String], exclude: &[String]) -> Result<Self, Failure> {
        let include = if include.is_empty() { None } else { Some(Set::new(include)?) };
        Ok(Self { include, exclude: Set::new(exclude)? })
    }

    /// Whether the entry with this name is restored.
    pub(super) fn select(&self, name: &[u8]) -> Selection {
        if self.exclude.matches(name) {
            return Selection::Skip;
        }
        let is_included = self.include.as_ref().is_none_or(|include| include.matches(name));
        if is_included { Selection::Take } else { Selection::Search }
    }
}

impl Set {
    fn new(patterns: &[String]) -> Result<Self, Failure> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in patterns {
            let pattern = text.trim_end_matches('/');
            let set = if pattern.contains('/') { &mut paths } else { &mut names };
            let glob = GlobBuilder::new(pattern.trim_start_matches('/'))
                .literal_separator(true)
                .backslash_escape(true)
                .build();
            set.add(glob.map_err(|error| invalid(text, &error))?);
        }
        let build = |set: &GlobSetBuilder| set.build().map_err(|error| invalid("patterns", &error));
        Ok(Self { names: build(&names)?, paths: build(&paths)? })
    }

    /// Whether a pattern matches the name or a folder above it.
    fn matches(&self, name: &[u8]) -> bool {
        if self.names.is_empty() && self.paths.is_empty() {
            return false;
        }
        let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = slashes.map(|(at, _)| at).chain([name.len()]);
        ends.map(|end| &name[..end]).any(|path| {
            let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            self.names.is_match(as_path(last)) || self.paths.is_match(as_path(path))
        })
    }
}

fn as_path(name: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;

    Path::new(OsStr::from_bytes(name))
}

fn invalid(text: &str, error: &globset::Error) -> Failure {
    Failure::Usage(format!("{text} is not a valid pattern: {}", error.kind()))
}
