//! Comparing filters, and snapshots of one.

use crate::support::{Shell, copies, keys, lines};

/// Two filters with 600 and 900 keys of their own and 500 in common.
fn two(shell: &Shell) {
    let shape = "--keys 5000 --fpr 1e-6";
    shell.build("a", &[keys("a", 600), keys("both", 500)].concat(), shape);
    shell.build("b", &[keys("b", 900), keys("both", 500)].concat(), shape);
}

#[test]
fn what_two_filters_have_in_common_is_estimated() {
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
fn a_diff_counts_what_came_and_went() {
    let shell = Shell::new();
    shell.build("old", &keys("k", 1_000), "--keys 5000 --fpr 1e-6");
    shell.write("new", shell.read("old"));
    let equal = shell.run("diff old new");
    assert_eq!(
        (equal.code, equal.text().contains("added    0, 0 +- 0 of them new keys")),
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
    assert_eq!(report["kept_keys"]["value"].as_f64().unwrap().round(), 970.0);
}

#[test]
fn filters_built_otherwise_or_damaged_are_refused() {
    let shell = Shell::new();
    two(&shell);
    shell.build("other", &keys("a", 10), "--keys 77");
    let mut damaged = shell.read("b");
    damaged[300] ^= 4;
    shell.write("damaged", damaged);
    for verb in ["similar", "diff"] {
        for other in ["other", "damaged", "nothing"] {
            let ran = shell.run(&format!("{verb} a {other}"));
            assert_eq!(ran.code, 2, "{verb} {other}");
            assert!(ran.err.contains(other) && ran.err.lines().count() == 1, "{}", ran.err);
        }
    }
}
