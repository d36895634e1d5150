//! The page of bounds names tests and fuzz targets that exist.

use testkit::workspace;

const PAGE: &str = include_str!("../../../../docs/SECURITY.md");

#[test]
fn every_test_that_the_page_of_bounds_names_exists() {
    let root = workspace::root();
    let files = workspace::sources(&root, |path| path.ends_with(".rs"));
    let rust: String = files.into_values().collect();
    let rows = PAGE.lines().filter(|line| line.starts_with('|') && line.contains('`'));
    let last_cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let mut named = 0;
    for cell in last_cells {
        let (tests, targets) = cell.split_once("fuzz target").unwrap_or((cell, ""));
        let quoted = |text: &'static str| text.split('`').skip(1).step_by(2);
        for test in quoted(tests) {
            assert!(rust.contains(&format!("fn {test}(")), "{test}");
            named += 1;
        }
        for target in quoted(targets) {
            assert!(root.join(format!("fuzz/fuzz_targets/{target}.rs")).exists(), "{target}");
            named += 1;
        }
    }
    assert!(named > 25, "{named}");
}
