//! Help, manual pages and shell completions.

use crate::support::Shell;

const VERBS: [&str; 20] = [
    "build",
    "check",
    "add",
    "grow",
    "refute",
    "remove",
    "count",
    "dedup",
    "merge",
    "similar",
    "diff",
    "patch",
    "info",
    "plan",
    "push",
    "pull",
    "store",
    "tour",
    "man",
    "completions",
];

#[test]
fn every_verb_has_help_with_examples_and_lines_of_at_most_100_columns() {
    let shell = Shell::new();
    for verb in VERBS {
        let help = shell.ok(&format!("{verb} --help"));
        assert!(help.text().contains("Usage: koel"), "{verb}");
        let long = help.text().lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{verb}");
        assert!(help.text().contains("Examples:"), "{verb}");
    }
    assert!(VERBS.iter().all(|verb| shell.ok("--help").text().contains(verb)));
}

#[test]
fn the_manual_has_a_page_per_verb() {
    let shell = Shell::new();
    assert!(shell.ok("man").text().contains(".TH koel 1"));
    shell.ok("man -o pages");
    for verb in VERBS {
        assert!(!shell.read(&format!("pages/koel-{verb}.1")).is_empty(), "{verb}");
    }
}

#[test]
fn the_verbs_of_stores_have_help_and_manual_pages() {
    let shell = Shell::new();
    shell.ok("man -o pages");
    for verb in [
        "import", "export", "ls", "rm", "get", "put", "del", "gc", "verify", "salvage", "stats",
        "load", "create", "scan", "keys", "copy",
    ] {
        let help = shell.ok(&format!("store {verb} --help"));
        assert!(help.text().contains("Examples:"), "{verb}");
        assert_eq!(help.text().lines().find(|line| line.chars().count() > 100), None, "{verb}");
        assert!(!shell.read(&format!("pages/koel-store-{verb}.1")).is_empty(), "{verb}");
    }
}

#[test]
fn every_shell_has_completions() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(shell.ok(&format!("completions {name}")).text().contains("dedup"), "{name}");
    }
}
