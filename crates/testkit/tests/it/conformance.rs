//! The scenarios of docs/conformance have the form that their page says, and its table is true.
//!
//! To write the table: `KOEL_WRITE_TABLE=1 cargo test -p testkit --test it conformance`.

use std::collections::BTreeSet;
use std::{env, fs};

use testkit::{conformance, workspace};

const BEGIN: &str = "<!-- doors: generated from doors.json and the scenarios -->\n\n";
const END: &str = "\n<!-- end of doors -->";

#[test]
fn the_page_has_the_table_of_doors() {
    let path = workspace::root().join("docs/conformance/README.md");
    let page = fs::read_to_string(&path).expect("a page");
    let (before, rest) = page.split_once(BEGIN).expect("a table");
    let (table, after) = rest.split_once(END).expect("its end");
    if env::var_os("KOEL_WRITE_TABLE").is_some() {
        let page = [before, BEGIN, &conformance::table(), END, after].concat();
        fs::write(path, page).expect("a file of the repository");
    } else {
        assert_eq!(table, conformance::table());
    }
}

#[test]
fn every_scenario_has_a_name_of_its_own_and_steps() {
    let mut names = BTreeSet::new();
    for scenario in conformance::themes().into_iter().flat_map(|theme| theme.scenarios) {
        assert!(!scenario.steps.is_empty(), "{}", scenario.name);
        assert!(names.insert(scenario.name.clone()), "two of {}", scenario.name);
    }
    assert!(names.len() >= 150, "{}", names.len());
}
