//! The files of this repository, for tests that look at them as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that tools write, not people.
const MADE: [&str; 3] = ["target", "corpus", "artifacts"];

/// Folders that have sources and pages.
const FOLDERS: [&str; 4] = ["crates", "docs", "fuzz", "scripts"];

/// The folder of this repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path from the root of the repository, with slashes, and the text of every file below
/// `crates`, `docs`, `fuzz` and `scripts` whose path `wanted` accepts.
///
/// # Panics
///
/// If a folder cannot be read, or a file is not text.
#[must_use]
pub fn sources(root: &Path, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let mut folders: Vec<String> = FOLDERS.map(str::to_owned).to_vec();
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder of this repository") {
            let entry = entry.expect("an entry of a folder");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let path = format!("{folder}/{name}");
            if entry.path().is_dir() {
                folders.extend(Some(path).filter(|_| !MADE.contains(&name.as_str())));
            } else if wanted(&path) {
                let text = fs::read_to_string(entry.path()).expect("a file of text");
                found.insert(path, text);
            }
        }
    }
    found
}
