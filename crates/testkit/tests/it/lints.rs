//! Lints warn, and only the test run denies them: a crate that is used by its path is checked by
//! other versions of Rust, whose lints find other things.

use std::fs;
use std::path::Path;

#[test]
fn lints_warn_in_manifests_and_are_denied_by_the_test_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    for manifest in ["Cargo.toml", "crates/koel-python/Cargo.toml"] {
        let manifest_text = read(manifest);
        let denied = manifest_text
            .lines()
            .find(|line| line.contains("\"deny\"") || line.contains("\"forbid\""));
        assert_eq!(denied, None, "{manifest}");
    }
    for script in ["scripts/test", "scripts/python"] {
        let denies = |line: &str| line.contains("cargo clippy") && line.ends_with("-D warnings");
        assert!(read(script).lines().any(denies), "{script}");
    }
}
