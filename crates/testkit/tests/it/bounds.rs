//! Each row of the page of bounds is the claim of a test, and the page has all fuzz targets.

use std::fs;

use testkit::claims::Claims;
use testkit::workspace::root;

const PAGE: &str = "docs/SECURITY.md";
const CLAIMS: &str = "docs/claims/security.toml";

#[test]
fn every_row_of_the_page_of_bounds_is_the_claim_of_a_test() {
    let read = |path| fs::read_to_string(root().join(path)).expect("a file");
    let (page, claims) = (read(PAGE), Claims::parse(&read(CLAIMS)).expect("claims"));
    let is_tested = |row: &str| {
        let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
        claims.claims.iter().any(|claim| claim.is_tested() && claim.says == row)
    };
    let mut rows = 0;
    let mut is_bound = false;
    for line in page.lines() {
        if line.contains(" | cost at most | ") {
            is_bound = true;
        } else if !line.starts_with('|') {
            is_bound = false;
        } else if is_bound && !line.starts_with("|-") {
            assert!(is_tested(line), "{CLAIMS} has no test of the row {line}");
            rows += 1;
        }
    }
    assert!(rows > 30, "{rows}");
}

#[test]
fn the_page_of_bounds_has_each_fuzz_target() {
    let page = fs::read_to_string(root().join(PAGE)).expect("a page");
    let folder = fs::read_dir(root().join("fuzz/fuzz_targets")).expect("a folder");
    let names = folder.map(|entry| entry.expect("an entry").file_name().into_string());
    for name in names {
        let name = name.expect("a name");
        let row = format!("| `{}` |", name.trim_end_matches(".rs"));
        assert!(page.contains(&row), "{row}");
    }
}
