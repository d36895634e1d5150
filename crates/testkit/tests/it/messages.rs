//! The compiler's message for a type that is not a key.
//!
//! `#[diagnostic::on_unimplemented]` is only advice to the compiler: nothing else fails if it is
//! misspelled or if another bound hides the trait. These tests compile small programs against the
//! library that they are linked with, and read the message.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that were compiled for this test.
fn libraries() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    test.parent().expect("a folder of libraries").to_owned()
}

/// The newest compiled library of `koel` in this folder.
fn koel(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a folder of libraries");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let is_koel = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libkoel-") && path.extension().is_some_and(|end| end == "rlib")
    };
    let age = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    paths.filter(is_koel).max_by_key(age).expect("a library of koel")
}

/// Compiles a function that gives `key` to a filter. Returns the errors, or an empty
/// string.
fn errors_for(key: &str) -> String {
    let libraries = libraries();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("it.rs");
    let program = format!(
        "pub struct Mine;\n\
         pub fn ask(filter: &koel::CuckooFilter) -> bool {{ filter.contains(&{key}) }}\n"
    );
    fs::write(&source, program).expect("a temporary file");
    let compiled = Command::new("rustc")
        .args(["--edition=2024", "--crate-type=lib", "--crate-name=it", "--emit=metadata"])
        .arg("-o")
        .arg(folder.path().join("it.rmeta"))
        .arg(format!("-Ldependency={}", libraries.display()))
        .arg(format!("--extern=koel={}", koel(&libraries).display()))
        .arg(&source)
        .current_dir(testkit::workspace::root())
        .output()
        .expect("a compiler");
    String::from_utf8(compiled.stderr).expect("messages in UTF-8")
}

#[test]
fn a_key_compiles() {
    assert_eq!(errors_for("(7_u64, \"text\")"), "");
}

#[test]
fn a_type_that_is_no_key_is_named_with_what_to_do() {
    for (key, shown) in [("Mine", "Mine"), ("0.5_f64", "f64")] {
        let errors = errors_for(key);
        for part in [
            &format!("`{shown}` is not a key"),
            "has no stable bytes that a filter could hash",
            "implement `koel::Key` for a type of your own",
            "use `to_bits`",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}
