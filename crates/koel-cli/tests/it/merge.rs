//! `koel merge`.

use crate::support::{Shell, copies, keys, lines};

#[test]
fn a_union_of_three_parts_matches_a_filter_of_the_whole() {
    let shell = Shell::new();
    let shape = "--keys 50k";
    let parts = [keys("x", 1_000), keys("y", 1_000), keys("z", 1_000)];
    for (name, part) in ["x", "y", "z"].iter().zip(&parts) {
        shell.build(name, part, shape);
    }
    shell.build("whole", &parts.concat(), shape);
    let streamed = shell.ok("merge x y z -o -");
    assert_eq!(shell.run_with("info --json -", &streamed.out).json()["keys"], 3_000);
    let all = lines(&parts.concat());
    shell.write("union", &streamed.out);
    assert_eq!(shell.run_with("check -c union", &all).text(), "3000\n");
    assert_eq!(
        shell.ok("info --json union").json()["fpr_expected"],
        shell.ok("info --json whole").json()["fpr_expected"]
    );
}

#[test]
fn a_refused_union_is_one_line_that_names_the_filter_and_no_file() {
    let shell = Shell::with_filter("set", &keys("a", 1_000), "--keys 1000");
    shell.build("other", &keys("b", 100), "--keys 1000 --prefer fast");
    for words in ["merge set other -o union", "similar set other", "diff set other"] {
        shell.run(words).fails("other");
    }
    shell.build("more", &keys("b", 1_000), "--keys 1000");
    let ran = shell.run("merge set more -o union");
    assert!(ran.code == 3 && ran.err.lines().count() == 1, "{}", ran.err);
    ran.says("full");
    assert!(!shell.path("union").exists());
}

#[test]
fn corrections_that_a_union_drops_are_counted_and_named() {
    let shell = Shell::with("allowed", lines(&keys("allowed", 90_000)));
    shell.build("a", &keys("a", 500), "--keys 5000 --fpr 0.05");
    shell.build("b", &keys("b", 4000), "--keys 5000 --fpr 0.05");
    let ran = shell.ok("merge a b -o union");
    assert!(!ran.text().contains("correction"), "{}", ran.text());
    let refuted = shell.ok("refute a allowed --json").json()["refuted"].as_u64().unwrap();
    let report = shell.ok("merge a b -o union --json").json();
    let [kept, dropped] =
        ["corrections", "corrections_dropped"].map(|it| report[it].as_u64().unwrap());
    assert!(dropped > 0 && kept > dropped && kept + dropped == refuted, "{kept}, {dropped}");
    let ran = shell.ok("merge a b -o union");
    assert!(ran.text().contains(&format!("{dropped} corrections dropped, so those names match")));
    shell.ok("refute b allowed");
    let ran = shell.ok_with("add b", b"one more\n");
    assert!(ran.text().contains("refute those again (koel refute)"), "{}", ran.text());
}

#[test]
fn keys_of_several_filters_that_are_counted_twice_give_a_hint() {
    let shell = Shell::with_filter("a", &keys("key", 3000), "--keys 9000");
    shell.build("b", &keys("key", 2000), "--keys 9000");
    shell.build("other", &keys("other", 3000), "--keys 9000");
    shell.build("twice", &copies(&keys("twice", 1000), 2), "--keys 9000");
    let ran = shell.ok("merge a b -o sum");
    assert!(ran.text().contains("copies of keys that several filters have"), "{}", ran.text());
    assert!(ran.text().contains("--max keeps one of each"), "{}", ran.text());
    for words in ["merge a b --max -o s", "merge a other -o s", "merge a twice -o s"] {
        assert!(!shell.ok(words).text().contains("hint"), "{words}");
    }
}

/// The second filter may be a pipe, which can be read only once.
#[cfg(unix)]
#[test]
fn filters_from_pipes_are_merged() {
    let shell = Shell::with_filter("a", &keys("a", 300), "--keys 900");
    shell.build("b", &keys("b", 300), "--keys 900");
    let ran = crate::support::bash(&shell, "$K merge <(cat a) <(cat b) -o union --json");
    assert_eq!(ran.json()["keys"], 600, "{}", ran.err);
}
