//! Patterns that select what is imported and exported.
//!
//! A pattern without a slash is compared with the last component of a name, one with a slash with
//! the whole name. A folder that matches stands for all that is in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use koel_store::content::Selection;

use crate::failure::Failure;

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
    Path::new(OsStr::from_bytes(name))
}

fn invalid(text: &str, error: &globset::Error) -> Failure {
    Failure::Usage(format!("{text} is not a valid pattern: {}", error.kind()))
}
