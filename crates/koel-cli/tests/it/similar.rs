//! `koel similar` and `koel diff`.

use crate::support::{Shell, copies, keys, lines};

/// Builds two filters with 500 keys in common, and 600 and 900 others.
fn two(shell: &Shell) {
    let shape = "--keys 5000 --fpr 1e-6";
    shell.build("a", &[keys("a", 600), keys("both", 500)].concat(), shape);
    shell.build("b", &[keys("b", 900), keys("both", 500)].concat(), shape);
}

#[test]
fn similar_estimates_the_keys_in_common() {
    let shell = Shell::new();
    two(&shell);
    let report = shell.ok("similar a b --json").json();
    let rounded = |name: &str| report[name]["value"].as_f64().unwrap().round();
    assert_eq!(rounded("common"), 500.0);
    assert_eq!((rounded("only_first"), rounded("only_second")), (600.0, 900.0));
    assert_eq!(rounded("union"), 2_000.0);
    assert!((report["jaccard"]["value"].as_f64().unwrap() - 0.25).abs() < 1e-3);
    let ran = shell.ok("similar a b");
    let text = ran.text();
    assert!(text.contains("in both") && text.contains("500 +- 0"), "{text}");
}

#[test]
fn diff_counts_added_and_removed_keys() {
    let shell = Shell::with_filter("old", &keys("k", 1_000), "--keys 5000 --fpr 1e-6");
    shell.write("new", shell.read("old"));
    let equal = shell.run("diff old new");
    assert_eq!(
        (equal.code, equal.text().contains("added    0 (about 0 new keys)\n")),
        (0, true),
        "{}",
        equal.text()
    );
    shell.run_with("remove new", &lines(&keys("k", 30)));
    shell.run_with("add new", &lines(&[keys("fresh", 20), copies(&keys("fresh", 1), 4)].concat()));
    let ran = shell.run("diff --json old new");
    assert_eq!(ran.code, 1);
    let report = ran.json();
    assert_eq!((&report["added"], &report["removed"]), (&24.into(), &30.into()));
    assert_eq!(report["new_keys"]["value"].as_f64().unwrap().round(), 20.0);
    assert_eq!(report["removed_keys"]["value"].as_f64().unwrap().round(), 30.0);
    assert_eq!(report["kept_keys"]["value"].as_f64().unwrap().round(), 970.0);
}

#[test]
fn filters_that_differ_in_corrections_only_are_different() {
    let shell = Shell::with_filter("old", &keys("k", 5_000), "--fpr 0.02");
    shell.write("allowed", lines(&keys("allowed", 20_000)));
    shell.write("new", shell.read("old"));
    let made = shell.ok("refute new allowed --json").json()["refuted"].as_u64().unwrap();
    let ran = shell.run("diff old new");
    assert_eq!(ran.code, 1, "{}", ran.text());
    assert!(ran.text().contains(&format!("corrections added  {made}\n")), "{}", ran.text());
    assert!(ran.text().contains("added              0 ") && !ran.text().contains("removed  1"));
    let report = shell.ok("similar old new --json").json();
    assert_eq!(report["corrections_only_second"], made);
    assert_eq!(
        (&report["corrections_only_first"], &report["jaccard"]["value"]),
        (&0.into(), &1.0.into())
    );
    assert!(shell.ok("similar new old").text().contains("corrections only in the first"));
}
